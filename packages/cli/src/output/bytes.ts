/** A number of bytes as people read it. */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let size = bytes;
  for (; size >= 1024 && at < units.length - 1; at += 1) size /= 1024;
  return `${at === 0 ? size : size.toFixed(1)} ${units[at]}`;
}
