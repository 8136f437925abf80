import { readFileSync, writeFileSync } from "node:fs";
import { fromHex, type Port } from "@trellis/protocol";

/** One vector: what is put in, by which recipe, and what comes out on every platform. */
export interface Vector {
  readonly name: string;
  readonly recipe: string;
  readonly input: unknown;
  readonly output: unknown;
}

export interface VectorFile {
  readonly about: string;
  readonly vectors: readonly Vector[];
}

/** How the output of a vector follows from its input. */
export type Recipe = (port: Port, input: unknown) => unknown;
export type Recipes = Readonly<Record<string, Recipe>>;

/** A recipe for inputs of a known form: the files are ours, so their form is not checked. */
export function recipe<I>(run: (port: Port, input: I) => unknown): Recipe {
  return (port, input) => run(port, input as I);
}

/** The bytes of a vector's hexadecimal text. */
export function bytes(hex: string): Uint8Array {
  const found = fromHex(hex);
  if (found === undefined) throw new TypeError(`Not hexadecimal: ${hex}`);
  return found;
}

function pathOf(file: string): URL {
  return new URL(`./${file}.json`, import.meta.url);
}

export function readVectors(file: string): VectorFile {
  return JSON.parse(readFileSync(pathOf(file), "utf8")) as VectorFile;
}

/** Runs one vector; an output goes through JSON, as the file does. */
export function runVector(port: Port, recipes: Recipes, vector: Vector): unknown {
  const run = recipes[vector.recipe];
  if (run === undefined) throw new TypeError(`No recipe "${vector.recipe}"`);
  return JSON.parse(JSON.stringify(run(port, vector.input) ?? null)) as unknown;
}

/** Writes the outputs anew. Only for a deliberate change of the wire: see README.md. */
export function rewriteVectors(port: Port, recipes: Recipes, file: string): void {
  const { about, vectors } = readVectors(file);
  const renewed = vectors.map((vector) => ({ ...vector, output: runVector(port, recipes, vector) }));
  writeFileSync(pathOf(file), `${JSON.stringify({ about, vectors: renewed }, null, 2)}\n`);
}
