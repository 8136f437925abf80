/**
 * The turns of the event loop, shared by everything in the process that sends or receives frames.
 *
 * In one turn first everything that was gathered is sent, then a bounded amount of received frames is worked
 * on. Without the bound a burst of frames would be worked on as one, its answers would leave as one, and the two
 * sides of a conversation would take turns where they could work at the same time.
 */

/** Work of one turn: about a frame of 32 small calls. Bytes stand for work; a frame has a price of its own. */
const turnBudget = 6_000;
const framePrice = 1_000;

/** Frames that are done and still referenced, at the most. */
const keptDone = 256;

interface Work {
  readonly price: number;
  readonly run: () => void;
}

let sends: (() => void)[] = [];
let works: Work[] = [];
let nextWork = 0;
let spent = 0;
let scheduled = false;
let whenIdle: (() => void)[] = [];

/** Runs `send` at the beginning of the next turn: how calls of one turn find each other. */
export function afterTick(send: () => void): void {
  sends.push(send);
  schedule();
}

/** Runs `work` on a frame of so many bytes now, or in a later turn when this one has had its share. In order. */
export function inTurn(bytes: number, work: () => void): void {
  const price = framePrice + bytes;
  if (nextWork === works.length && spent < turnBudget) {
    // A frame that comes alone costs no turn of its own: what a burst has spent is forgotten behind it.
    if (spent === 0) queueMicrotask(endBurst);
    spent += price;
    work();
  } else {
    works.push({ price, run: work });
    schedule();
  }
}

/** Runs behind the frames that came with one read of the socket. */
function endBurst(): void {
  if (nextWork === works.length) spent = 0;
}

/** Resolves when no frame waits for its turn. */
export function turnsIdle(): Promise<void> {
  if (nextWork === works.length) return Promise.resolve();
  return new Promise((resolve) => whenIdle.push(resolve));
}

const later: (callback: () => void) => void = "setImmediate" in globalThis ? immediate : macrotask;

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  later(turn);
}

function turn(): void {
  scheduled = false;
  spent = 0;
  const due = sends;
  sends = [];
  for (const send of due) guarded(send);
  while (nextWork < works.length && spent < turnBudget) {
    const work = works[nextWork];
    nextWork += 1;
    if (work === undefined) break;
    spent += work.price;
    guarded(work.run);
  }
  if (nextWork < works.length) {
    letGo();
    return schedule();
  }
  works = [];
  nextWork = 0;
  spent = 0;
  const waiting = whenIdle;
  whenIdle = [];
  for (const resolve of waiting) resolve();
}

/** Under a backlog that never ends the queue is never empty: what is done must be let go of all the same. */
function letGo(): void {
  if (nextWork < keptDone) return;
  works = works.slice(nextWork);
  nextWork = 0;
}

/** One that throws is a bug to be seen, and no reason for the others to be forgotten. */
function guarded(run: () => void): void {
  try {
    run();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function immediate(callback: () => void): void {
  setImmediate(callback);
}

/** Browsers: a message to ourselves is the cheapest turn that lets pending input in first. */
function macrotask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  const onMessage = () => {
    port1.close();
    callback();
  };
  port1.addEventListener("message", onMessage);
  port1.start();
  port2.postMessage(null);
}
