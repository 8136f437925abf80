import type { Port } from "../port/port.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LARGEST_TIME = 2 ** 48 - 1;

/**
 * A fresh id: a ULID, 26 characters of Crockford's base 32, that sort by time. `now` is in milliseconds since the
 * epoch; 80 of the bits are random.
 */
export function newId(port: Port, now: number): string {
  let time = Math.min(Math.max(Math.floor(now), 0), LARGEST_TIME);
  let head = "";
  for (let index = 0; index < 10; index += 1) {
    head = CROCKFORD[time % 32] + head;
    time = Math.floor(time / 32);
  }
  let tail = "";
  let bits = 0;
  let held = 0;
  for (const byte of port.random(10)) {
    bits = ((bits << 8) | byte) & 0x1fff;
    held += 8;
    while (held >= 5) {
      held -= 5;
      tail += CROCKFORD[(bits >> held) & 31];
    }
  }
  return head + tail;
}

/** Whether the text has the form of a {@link newId}. */
export function isId(text: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
}
