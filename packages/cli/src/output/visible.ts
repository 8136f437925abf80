// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text of others, made harmless for a terminal: control and direction characters become escapes. */
export function visible(text: string): string {
  return text.replace(control, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
