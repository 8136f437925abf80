/** The known word that is nearest to a wrong one, when it is near enough to have been meant. */
export function similar(wrong: string, known: readonly string[]): string | undefined {
  const scored = known
    .map((word) => ({ word, distance: distanceOf(wrong.toLowerCase(), word.toLowerCase()) }))
    .sort((left, right) => left.distance - right.distance);
  const [best] = scored;
  return best !== undefined && best.distance <= Math.max(1, wrong.length * 0.4) ? best.word : undefined;
}

/** Levenshtein distance. */
function distanceOf(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let at = 1; at <= left.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= right.length; to += 1) {
      const changed = (row[to - 1] ?? 0) + (left[at - 1] === right[to - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}
