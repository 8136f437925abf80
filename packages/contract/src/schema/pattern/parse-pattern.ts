/**
 * A regular expression as a tree, as far as the question needs it in how many ways a text can match.
 * Atoms keep their source: which characters they stand for is asked of the engine itself.
 */
export type PatternNode =
  | { readonly kind: "empty" }
  | { readonly kind: "atom"; readonly source: string }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly PatternNode[] }
  | { readonly kind: "repeat"; readonly part: PatternNode; readonly min: number; readonly max: number };

/** A parsed pattern: its tree, those of its look-arounds, and whether it refers back. */
export interface ParsedPattern {
  readonly roots: readonly PatternNode[];
  readonly refersBack: boolean;
}

const EMPTY: PatternNode = { kind: "empty" };
const ESCAPE =
  /\\(?:u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[^])/uy;
const CLASS = /\[(?:\\[^]|[^\]\\])*\]/uy;
const GROUP = /\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/uy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/uy;

/** Reads a pattern that the engine has accepted under the `u` flag. */
export function parsePattern(pattern: string): ParsedPattern {
  const reader = new PatternReader(pattern);
  const main = reader.choice();
  return { roots: [main, ...reader.lookArounds], refersBack: reader.refersBack };
}

class PatternReader {
  readonly lookArounds: PatternNode[] = [];
  refersBack = false;
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  choice(): PatternNode {
    const parts = [this.#sequence()];
    while (this.#source[this.#at] === "|") {
      this.#at++;
      parts.push(this.#sequence());
    }
    return parts.length === 1 ? (parts[0] ?? EMPTY) : { kind: "choice", parts };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at] ?? "")) {
      parts.push(this.#quantified(this.#term()));
    }
    return { kind: "sequence", parts };
  }

  #term(): PatternNode {
    const first = this.#source[this.#at];
    if (first === "(") return this.#group();
    if (first === "[") return { kind: "atom", source: this.#take(CLASS) };
    if (first === "\\") return this.#escape();
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    this.#at += character.length;
    return character === "^" || character === "$" ? EMPTY : { kind: "atom", source: character };
  }

  #group(): PatternNode {
    const opening = this.#take(GROUP);
    const inner = this.choice();
    this.#at++;
    if (!/[=!]$/.test(opening)) return inner;
    this.lookArounds.push(inner);
    return EMPTY;
  }

  #escape(): PatternNode {
    const source = this.#take(ESCAPE);
    if (/^\\[bB]$/.test(source)) return EMPTY;
    if (/^\\[1-9k]/.test(source)) {
      this.refersBack = true;
      return EMPTY;
    }
    return { kind: "atom", source };
  }

  #quantified(part: PatternNode): PatternNode {
    QUANTIFIER.lastIndex = this.#at;
    const match = QUANTIFIER.exec(this.#source);
    if (match === null) return part;
    this.#at += match[0].length;
    const [, sign, least, comma, most] = match;
    if (sign !== undefined)
      return { kind: "repeat", part, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity };
    const min = Number(least);
    return {
      kind: "repeat",
      part,
      min,
      max: comma === undefined ? min : most === "" ? Infinity : Number(most),
    };
  }

  #take(token: RegExp): string {
    token.lastIndex = this.#at;
    const text = token.exec(this.#source)?.[0] ?? this.#source.slice(this.#at, this.#at + 1);
    this.#at += text.length;
    return text;
  }
}
