import { DefinitionError } from "./errors/definition-error.ts";

/**
 * Lets the platform's own packages define ids in the namespace `trellis.`.
 * @internal
 */
export const reserved: unique symbol = Symbol.for("trellis.reserved");

/** Given as the last argument of `define*` by the platform's own packages. */
export type Reserved = typeof reserved;

const API_ID = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+@v[1-9][0-9]*$/;
const PARTICIPANT_ID = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$/;
const ACTION_NAME = /^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*)*$/;
const ALIAS = /^[a-z][A-Za-z0-9]*$/;
const MAX_LENGTH = 128;

/** True for an API id: dotted, lower case, with a version: `acme.orders@v1`. */
export function isApiId(id: string): boolean {
  return id.length <= MAX_LENGTH && API_ID.test(id);
}

/** True for a participant id: dotted and lower case, without a version: `acme.orders-service`. */
export function isParticipantId(id: string): boolean {
  return id.length <= MAX_LENGTH && PARTICIPANT_ID.test(id);
}

/** True for an action name: dotted segments of letters and digits: `Orders.Items.List`. */
export function isActionName(name: string): boolean {
  return name.length <= MAX_LENGTH && ACTION_NAME.test(name);
}

/** True for the alias of a resource: an identifier in lower camel case: `carts`. */
export function isAlias(alias: string): boolean {
  return alias.length <= MAX_LENGTH && ALIAS.test(alias);
}

/** Refuses an API id that is malformed or reserved. */
export function requireApiId(id: string, permit: Reserved | undefined): void {
  if (!isApiId(id)) {
    throw new DefinitionError({
      place: `API ${JSON.stringify(id)}`,
      problem: "this is not an API id",
      hint: "Write dotted lower-case words and a version, like acme.orders@v1",
    });
  }
  requireUnreserved(`API ${JSON.stringify(id)}`, id, permit);
}

/** Refuses a participant id that is malformed or reserved. */
export function requireParticipantId(id: string, permit: Reserved | undefined): void {
  if (!isParticipantId(id)) {
    throw new DefinitionError({
      place: `Participant ${JSON.stringify(id)}`,
      problem: "this is not a participant id",
      hint: "Write dotted lower-case words without a version, like acme.orders-service",
    });
  }
  requireUnreserved(`Participant ${JSON.stringify(id)}`, id, permit);
}

function requireUnreserved(place: string, id: string, permit: Reserved | undefined): void {
  if (id.startsWith("trellis.") && permit !== reserved) {
    throw new DefinitionError({
      place,
      problem: "the namespace trellis. belongs to the platform",
      hint: "Begin the id with your own name",
    });
  }
}
