/**
 * A string of NATS configuration, for any content: paths with spaces, quotes, backslashes, `$` and line breaks.
 * In double quotes neither variables nor comments exist, and these escapes are all there is.
 */
export function quote(text: string): string {
  let quoted = "";
  for (const char of text) {
    if (char === '"' || char === "\\") quoted += `\\${char}`;
    else if (char < " " || char === "\x7f")
      quoted += `\\x${char.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`;
    else quoted += char;
  }
  return `"${quoted}"`;
}

export function quoteList(texts: readonly string[]): string {
  return `[ ${texts.map(quote).join(", ")} ]`;
}
