import { afterTick } from "../lifecycle/tick.ts";

let turn: Promise<void> | undefined;

/** The next turn of the event loop, shared by all who wait for it: what they send then goes out in one piece. */
export function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) =>
    afterTick(() => {
      turn = undefined;
      resolve();
    }),
  );
  return turn;
}
