import { type Automaton, buildAutomaton, type CharacterSet, MAX_STATES } from "./automaton.ts";
import { parsePattern } from "./parse-pattern.ts";

/**
 * Says what is wrong with a pattern that a backtracking engine may need exponential time for; `undefined` when there
 * is nothing. The pattern must compile under the `u` flag.
 *
 * Exponential time needs a loop that one text can go round in two ways (Weber and Seidl, "On the degree of ambiguity
 * of finite automata", 1991). That is what is looked for, so `^([a-z]+\.)*[a-z]+$` passes, unlike with a rule that
 * only counts nested stars. Quadratic patterns pass too: bound them by `maxLength`, which is checked before.
 */
export function findCatastrophe(pattern: string): string | undefined {
  const { roots, refersBack } = parsePattern(pattern);
  if (refersBack) return "refers back to a group, for which no bound on its time is known";
  const setOf = characterSets(pattern);
  for (const root of roots) {
    const automaton = buildAutomaton(root, setOf);
    if (automaton === undefined)
      return `is too large to be checked (more than ${MAX_STATES} characters written out)`;
    if (loops(automaton).some((loop) => isAmbiguous(automaton, loop))) return "can take exponential time";
  }
  return undefined;
}

/** Characters beside ASCII that stand for their kinds: letters, marks, spaces, digits, symbols, astral ones. */
const SAMPLES = "\u00a0\u00e9\u0301\u0416\u0660\u2028\u20ac\u4e00\ufeff\u{1f600}\u{10ffff}";

/**
 * Which characters an atom stands for, over an alphabet of ASCII, the samples and every character that the pattern
 * itself speaks of. The engine answers, so that classes and properties mean here what they will mean later.
 */
function characterSets(pattern: string): (source: string) => CharacterSet {
  const alphabet = new Set<string>(SAMPLES);
  for (let code = 0; code < 128; code++) alphabet.add(String.fromCodePoint(code));
  for (const character of pattern) alphabet.add(character);
  for (const [, braced, plain] of pattern.matchAll(/\\(?:u\{([0-9a-fA-F]+)\}|[ux]([0-9a-fA-F]{2,4}))/g)) {
    alphabet.add(String.fromCodePoint(Number.parseInt(braced ?? plain ?? "0", 16)));
  }
  const letters = [...alphabet];
  const known = new Map<string, CharacterSet>();
  return (source) => {
    let set = known.get(source);
    if (set === undefined) {
      const atom = new RegExp(`^(?:${source})$`, "u");
      set = 0n;
      letters.forEach((letter, index) => {
        if (atom.test(letter)) set = (set ?? 0n) | (1n << BigInt(index));
      });
      known.set(source, set);
    }
    return set;
  };
}

/** The states of each loop: strongly connected components that hold an edge (Tarjan, without recursion). */
function loops({ follow }: Automaton): readonly ReadonlySet<number>[] {
  const backward: number[][] = follow.map(() => []);
  follow.forEach((edges, from) => {
    for (const to of edges.keys()) backward[to]?.push(from);
  });
  const found: ReadonlySet<number>[] = [];
  const assigned = new Set<number>();
  follow.forEach((_, state) => {
    if (assigned.has(state)) return;
    const ahead = reach([state], (at) => follow[at]?.keys() ?? []);
    const behind = reach([state], (at) => backward[at] ?? []);
    const loop = new Set([...ahead].filter((other) => behind.has(other)));
    for (const member of loop) assigned.add(member);
    if (loop.size > 0) found.push(loop);
  });
  return found;
}

/** What can be reached by one step or more. */
function reach<T>(from: Iterable<T>, next: (at: T) => Iterable<T>): Set<T> {
  const seen = new Set<T>();
  const open = [...from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const to of next(at)) {
      if (seen.has(to)) continue;
      seen.add(to);
      open.push(to);
    }
  }
  return seen;
}

/**
 * Whether one text can go round a loop in two ways: over an edge that counts twice, or on two paths that part from a
 * state and meet again. All states of a loop reach each other, so it is enough to find a pair of different states
 * that is reached from a pair of equal ones and reaches one.
 */
function isAmbiguous({ sets, follow }: Automaton, loop: ReadonlySet<number>): boolean {
  for (const state of loop) {
    for (const [to, ways] of follow[state] ?? []) if (ways > 1 && loop.has(to)) return true;
  }
  const size = sets.length;
  const edges = new Map<number, number[]>();
  const backward = new Map<number, number[]>();
  const successors = (pair: number): number[] => {
    const left = Math.floor(pair / size);
    const right = pair % size;
    const pairs: number[] = [];
    for (const a of follow[left]?.keys() ?? []) {
      if (!loop.has(a)) continue;
      for (const b of follow[right]?.keys() ?? []) {
        if (loop.has(b) && ((sets[a] ?? 0n) & (sets[b] ?? 0n)) !== 0n) pairs.push(a * size + b);
      }
    }
    return pairs;
  };
  const equal = [...loop].map((state) => state * size + state);
  const ahead = reach(equal, (pair) => {
    const pairs = successors(pair);
    edges.set(pair, pairs);
    for (const to of pairs) backward.set(to, [...(backward.get(to) ?? []), pair]);
    return pairs;
  });
  const behind = reach(equal, (pair) => backward.get(pair) ?? []);
  for (const pair of ahead) {
    if (Math.floor(pair / size) !== pair % size && behind.has(pair)) return true;
  }
  return false;
}
