import { DefinitionError } from "./errors/definition-error.ts";

/** A length of time: `"250ms"`, `"5s"`, `"30m"`, `"12h"`, `"1d"`, or a number of milliseconds. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

/** A size: `"512B"`, `"64KiB"`, `"64MiB"`, `"2GiB"`, `"1MB"` (decimal), or a number of bytes. */
export type Size = number | `${number}${"B" | "KiB" | "MiB" | "GiB" | "TiB" | "KB" | "MB" | "GB" | "TB"}`;

const MILLISECONDS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

/** Reads a duration into whole milliseconds; refuses what is not a positive one, naming `place`. */
export function parseDuration(duration: Duration, place: string): number {
  return parseQuantity(duration, {
    place,
    units: MILLISECONDS,
    example: 'a positive duration like "5s", "30m" or "1d"',
  });
}

/** Reads a size into whole bytes; refuses what is not a positive one, naming `place`. */
export function parseSize(size: Size, place: string): number {
  return parseQuantity(size, {
    place,
    units: BYTES,
    example: 'a positive size like "64KiB", "64MiB" or "2GiB"',
  });
}

/** Checks a whole number of at least `least` (default 1). */
export function requireCount(value: number, place: string, least = 1): number {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new DefinitionError({
      place,
      problem: `${String(value)} is not a whole number of at least ${least}`,
    });
  }
  return value;
}

interface Quantity {
  readonly place: string;
  readonly units: Readonly<Record<string, number>>;
  readonly example: string;
}

function parseQuantity(given: number | string, { place, units, example }: Quantity): number {
  const value = typeof given === "number" ? given : fromText(given, units);
  if (value === undefined || !Number.isSafeInteger(value) || value <= 0) {
    throw new DefinitionError({
      place,
      problem: `${JSON.stringify(given)} will not do`,
      hint: `Write ${example}`,
    });
  }
  return value;
}

function fromText(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text);
  const unit = match?.[2];
  const factor = unit !== undefined && Object.hasOwn(units, unit) ? units[unit] : undefined;
  return factor === undefined ? undefined : Math.round(Number(match?.[1]) * factor);
}
