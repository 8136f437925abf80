import { type CompiledSchema, compileSchema, type Decoded, type FeedAction } from "@trellis/contract";
import { FeedOpenedSchema, readFeedOpening } from "@trellis/protocol";
import type { Callable } from "../rpc/callable.ts";

const opened = compileSchema(FeedOpenedSchema);
const made = new WeakMap<FeedAction, Callable>();

/**
 * The call that opens a feed. It may run twice: a session whose answer got lost never starts, since its first
 * challenge is not answered.
 */
export function feedOpenAction(feed: FeedAction): Callable {
  const known = made.get(feed);
  if (known !== undefined) return known;
  const action: Callable = {
    kind: "feed",
    name: feed.name,
    api: feed.api,
    title: feed.title,
    description: feed.description,
    schemas: { input: undefined, output: undefined },
    input: openingSchema(feed.input),
    output: opened,
    errors: feed.errors,
    idempotent: true,
    // Each session on its own, so that replicas share them.
    coalesce: false,
    download: false,
  };
  made.set(feed, action);
  return action;
}

/** The schema of what opens a feed, around that of its input. */
function openingSchema(input: CompiledSchema | undefined): CompiledSchema {
  return {
    json: {},
    transforms: input?.transforms ?? false,
    issues: (value) => {
      const opening = readFeedOpening(value);
      return opening === undefined ? notAnOpening : input?.issues(opening.input);
    },
    decode: (value): Decoded => {
      const opening = readFeedOpening(value);
      if (opening === undefined) return { ok: false, issues: notAnOpening };
      if (input === undefined) return { ok: true, value: { ...opening, input: undefined } };
      const decoded = input.decode(opening.input);
      return decoded.ok ? { ok: true, value: { ...opening, input: decoded.value } } : decoded;
    },
  };
}

const notAnOpening = [{ path: "", message: "does not open a feed" }] as const;
