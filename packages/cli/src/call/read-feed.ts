import { facadeName } from "@trellis/contract";
import type { FeedOpenerWithInput } from "@trellis/runtime";
import type { CoreClient } from "../platform/connect-core.ts";
import type { FoundPlatform } from "../platform/find-platform.ts";
import { listApis } from "../platform/lists.ts";
import { connectCaller } from "./connect-caller.ts";
import { findAction } from "./find-action.ts";

export interface ReadFeed {
  readonly core: CoreClient;
  readonly platform: FoundPlatform;
  /** Name of the feed, with or without its API. */
  readonly name: string;
  readonly input: unknown;
  readonly signal: AbortSignal;
  /** Takes one item; false when no more are wanted. */
  onItem(item: unknown): boolean;
}

type Opener = FeedOpenerWithInput<unknown, unknown, never>;

/**
 * Opens a feed whose contract is learned from the platform and reads it until it ends, no more is wanted or the signal
 * aborts. Throws what the feed ends with.
 */
export async function readFeed({ core, platform, name, input, signal, onItem }: ReadFeed): Promise<void> {
  const { api, action } = findAction(await listApis(core), name, "feeds");
  const { client, contract } = await connectCaller(core, platform, api.id);
  try {
    const wanted = contract.feeds[action]?.input;
    const open = openerOf(client.feed, action);
    for await (const item of open(wanted === null ? undefined : (input ?? {}), { signal })) {
      if (!onItem(item)) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await client.close();
  }
}

/** What opens a feed of this name: the facade was made from the contract that the name was found in. */
function openerOf(facade: Readonly<Record<string, Readonly<Record<string, unknown>>>>, name: string): Opener {
  const { group, leaf } = facadeName(name);
  const open = facade[group]?.[leaf];
  if (typeof open !== "function") throw new TypeError(`The contract has no feed ${name}.`);
  return open as Opener;
}
