import { BaseError } from "@trellis/result";

/** A text that is not strict JSON. */
export class StrictJsonError extends BaseError {
  readonly kind = "call";
  readonly type = "StrictJsonError";
  /** Offset in the text, in UTF-16 code units. */
  readonly at: number;

  constructor(at: number, problem: string) {
    super(`Not strict JSON at ${at}: ${problem}`);
    this.at = at;
  }
}

/** Deepest nesting that is read, as for canonical JSON. */
const MAX_DEPTH = 256;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Reads JSON text (RFC 8259) that must mean one thing only: refuses duplicate keys, lone surrogates, numbers that a
 * double cannot hold and nesting over 256. A key `__proto__` becomes an own, inert member.
 *
 * For statements that are signed or digested, where two readers must never see two documents. Throws a
 * {@link StrictJsonError}.
 */
export function parseStrictJson(text: string): unknown {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#space();
    if (this.#at !== this.#text.length) throw this.#refused("something follows the value");
  }

  value(depth: number): unknown {
    this.#space();
    const first = this.#text[this.#at];
    if (first === '"') return this.#string();
    if (first === "{" || first === "[") {
      if (depth >= MAX_DEPTH) throw this.#refused(`nested deeper than ${MAX_DEPTH} levels`);
      this.#at++;
      return first === "{" ? this.#object(depth) : this.#array(depth);
    }
    const word = this.#match(WORD);
    if (word !== undefined) return word === "null" ? null : word === "true";
    return this.#number();
  }

  #object(depth: number): object {
    const members: Record<string, unknown> = {};
    if (this.#skip("}")) return members;
    do {
      this.#space();
      const start = this.#at;
      const key = this.#string();
      if (Object.hasOwn(members, key)) {
        this.#at = start;
        throw this.#refused(`the key ${JSON.stringify(key)} stands there twice`);
      }
      this.#expect(":");
      const value = this.value(depth + 1);
      Object.defineProperty(members, key, { value, enumerable: true, writable: true, configurable: true });
    } while (this.#skip(","));
    this.#expect("}");
    return members;
  }

  #array(depth: number): unknown[] {
    const items: unknown[] = [];
    if (this.#skip("]")) return items;
    do {
      items.push(this.value(depth + 1));
    } while (this.#skip(","));
    this.#expect("]");
    return items;
  }

  #string(): string {
    const start = this.#at;
    const raw = this.#match(STRING);
    if (raw === undefined) throw this.#refused("a string was expected");
    const value = JSON.parse(raw) as string;
    if (LONE_SURROGATE.test(value)) {
      this.#at = start;
      throw this.#refused("a string holds a lone surrogate");
    }
    return value;
  }

  #number(): number {
    const raw = this.#match(NUMBER);
    if (raw === undefined) throw this.#refused("a value was expected");
    const value = Number(raw);
    if (!Number.isFinite(value)) throw this.#refused(`the number ${raw.slice(0, 40)} is too large`);
    return value;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    if (match !== undefined) this.#at += match.length;
    return match;
  }

  #skip(character: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#skip(character)) throw this.#refused(`${JSON.stringify(character)} was expected`);
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #refused(problem: string): StrictJsonError {
    return new StrictJsonError(this.#at, problem);
  }
}
