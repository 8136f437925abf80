import { coreApi } from "@trellis/control-plane/core";
import type { CallOptions } from "@trellis/runtime";
import type { CoreClient } from "../platform/connect-core.ts";
import type { FoundPlatform } from "../platform/find-platform.ts";
import { listApis } from "../platform/lists.ts";
import { connectCaller } from "./connect-caller.ts";
import { findAction } from "./find-action.ts";

export interface CallOnce {
  readonly core: CoreClient;
  readonly platform: FoundPlatform;
  /** Name of the action, with or without its API. */
  readonly name: string;
  readonly input: unknown;
  readonly options: CallOptions;
}

/** Calls an action whose contract is learned from the platform. Throws what the call ends with. */
export async function callOnce({ core, platform, name, input, options }: CallOnce): Promise<unknown> {
  const { api, action } = findAction(await listApis(core), name);
  if (api.id === coreApi.id) return core.request(action, input ?? {}, options).orThrow();
  const { client, contract } = await connectCaller(core, platform, api.id);
  try {
    const wanted = contract.rpc[action]?.input;
    return await client.request(action, wanted === null ? undefined : (input ?? {}), options).orThrow();
  } finally {
    await client.close();
  }
}
