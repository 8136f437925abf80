import type { PatternNode } from "./parse-pattern.ts";

/** A set of characters of the alphabet at hand, as bits. */
export type CharacterSet = bigint;

/**
 * The position automaton of a pattern (Glushkov): a state for each atom, an edge where one may follow another.
 * Edges are counted (1, or 2 for "in more than one way"), because a backtracking engine tries each way.
 */
export interface Automaton {
  /** Characters that lead into each state. */
  readonly sets: readonly CharacterSet[];
  /** For each state, the states that may follow, and in how many ways. */
  readonly follow: readonly ReadonlyMap<number, number>[];
}

/** More states than this are not worth a regular expression. */
export const MAX_STATES = 600;

interface Fragment {
  readonly first: ReadonlyMap<number, number>;
  readonly last: ReadonlyMap<number, number>;
  /** Ways to match nothing. */
  readonly empty: number;
}

const NOTHING: Fragment = { first: new Map(), last: new Map(), empty: 1 };

/** Builds the automaton; `undefined` when it grows past {@link MAX_STATES}. */
export function buildAutomaton(
  root: PatternNode,
  setOf: (source: string) => CharacterSet,
): Automaton | undefined {
  const builder = new Builder(setOf);
  builder.build(root);
  return builder.sets.length > MAX_STATES ? undefined : builder;
}

class Builder implements Automaton {
  readonly sets: CharacterSet[] = [];
  readonly follow: Map<number, number>[] = [];
  readonly #setOf: (source: string) => CharacterSet;

  constructor(setOf: (source: string) => CharacterSet) {
    this.#setOf = setOf;
  }

  build(node: PatternNode): Fragment {
    if (this.sets.length > MAX_STATES || node.kind === "empty") return NOTHING;
    if (node.kind === "atom") return this.#atom(node.source);
    if (node.kind === "repeat") return this.#repeat(node.part, node.min, node.max);
    if (node.kind === "sequence") {
      return node.parts.reduce<Fragment>((before, part) => this.#join(before, this.build(part)), NOTHING);
    }
    const parts = node.parts.map((part) => this.build(part));
    return {
      first: united(parts.map((part) => part.first)),
      last: united(parts.map((part) => part.last)),
      empty: Math.min(
        2,
        parts.reduce((ways, part) => ways + part.empty, 0),
      ),
    };
  }

  #atom(source: string): Fragment {
    const state = this.sets.push(this.#setOf(source)) - 1;
    this.follow.push(new Map());
    const only = new Map([[state, 1]]);
    return { first: only, last: only, empty: 0 };
  }

  #join(left: Fragment, right: Fragment): Fragment {
    this.#connect(left.last, right.first, 1);
    return {
      first: united([left.first, times(right.first, left.empty)]),
      last: united([right.last, times(left.last, right.empty)]),
      empty: Math.min(2, left.empty * right.empty),
    };
  }

  /** Short repeats are written out; long ones are taken for endless, which only ever finds more ways. */
  #repeat(part: PatternNode, min: number, max: number): Fragment {
    if (max === 0) return NOTHING;
    if (max !== Infinity && (max === 1 || max * countAtoms(part) <= 24))
      return this.#writtenOut(part, min, max);
    const body = this.build(part);
    // Nothing may stand for any of a bounded number of empty turns: each choice of turns is another way.
    this.#connect(body.last, body.first, body.empty > 0 && max !== Infinity ? 2 : 1);
    return { first: body.first, last: body.last, empty: min === 0 ? 1 : Math.min(1, body.empty) };
  }

  #writtenOut(part: PatternNode, min: number, max: number): Fragment {
    let optional = NOTHING;
    for (let turn = max; turn > min; turn--) {
      const more = this.#join(this.build(part), optional);
      optional = { ...more, empty: Math.min(2, more.empty + 1) };
    }
    let whole = NOTHING;
    for (let turn = 0; turn < min; turn++) whole = this.#join(whole, this.build(part));
    return this.#join(whole, optional);
  }

  #connect(from: ReadonlyMap<number, number>, to: ReadonlyMap<number, number>, ways: number): void {
    for (const [left, leftWays] of from) {
      const edges = this.follow[left];
      if (edges === undefined) continue;
      for (const [right, rightWays] of to) {
        edges.set(right, Math.min(2, (edges.get(right) ?? 0) + leftWays * rightWays * ways));
      }
    }
  }
}

function united(maps: readonly ReadonlyMap<number, number>[]): ReadonlyMap<number, number> {
  const sum = new Map<number, number>();
  for (const map of maps)
    for (const [state, ways] of map) sum.set(state, Math.min(2, (sum.get(state) ?? 0) + ways));
  return sum;
}

function times(map: ReadonlyMap<number, number>, ways: number): ReadonlyMap<number, number> {
  if (ways === 0) return new Map();
  return new Map([...map].map(([state, count]) => [state, Math.min(2, count * ways)]));
}

function countAtoms(node: PatternNode): number {
  if (node.kind === "empty") return 0;
  if (node.kind === "atom") return 1;
  if (node.kind === "repeat")
    return countAtoms(node.part) * (node.max === Infinity ? 1 : Math.max(1, Math.min(node.max, 24)));
  return node.parts.reduce((sum, part) => sum + countAtoms(part), 0);
}
