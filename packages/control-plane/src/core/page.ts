import { err, ok, type Result } from "@trellis/result";
import type { PageRequest } from "../storage/page.ts";
import { CursorInvalid } from "./errors.ts";

const defaultLimit = 100;

/** Reads what a list was asked for. A cursor names its list, so that one of another list is refused. */
export function readPage(
  list: string,
  input: { limit?: number; cursor?: string },
): Result<PageRequest, InstanceType<typeof CursorInvalid>> {
  const limit = input.limit ?? defaultLimit;
  if (input.cursor === undefined) return ok({ limit, after: undefined });
  const text = Buffer.from(input.cursor, "base64url").toString();
  const prefix = `${list} `;
  if (!text.startsWith(prefix)) return err(new CursorInvalid());
  return ok({ limit, after: text.slice(prefix.length) });
}

/** The cursor of the page that follows; absent on the last one. */
export function nextCursor(list: string, next: string | undefined): { cursor?: string } {
  return next === undefined ? {} : { cursor: Buffer.from(`${list} ${next}`).toString("base64url") };
}
