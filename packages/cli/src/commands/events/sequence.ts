import { InvalidArgumentError } from "commander";

/** Reads the number of a dead letter. */
export function sequenceOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError("A number from `trellis events dlq ls` is needed.");
}
