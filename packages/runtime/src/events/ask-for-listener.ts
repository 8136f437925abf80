import type { RpcClient } from "../rpc/rpc-client.ts";
import type { AskForListener } from "./ephemeral-listener.ts";
import { listenApi } from "./listen-api.ts";

const action = listenApi.rpc["Events.Listen"];

/** Asks the platform over RPC. */
export function askForListener(rpc: RpcClient): AskForListener {
  // The answer was checked against the schema that the type is made from.
  return (input) =>
    rpc.call({ action, input, options: undefined, origin: undefined }) as ReturnType<AskForListener>;
}
