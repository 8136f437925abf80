const bars = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/** Counts as a line of bars, the largest one the highest; nothing is a space. */
export function sparkline(counts: readonly number[]): string {
  const most = Math.max(0, ...counts);
  return counts
    .map((count) => (count === 0 ? " " : (bars[Math.ceil((count / most) * bars.length) - 1] ?? "")))
    .join("");
}
