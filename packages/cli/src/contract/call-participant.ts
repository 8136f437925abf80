import {
  type AnyDeclaredErrorClass,
  defineApi,
  defineApp,
  defineError,
  digestOf,
  type FeedAction,
  feed,
  type Participant,
  type RpcAction,
  rpc,
  use,
} from "@trellis/contract";
import { Type } from "typebox";
import type { CallableApi, CallableFeed, CallableRpc } from "./artifact.ts";
import { callerPrefix } from "./of-command.ts";

const longestId = 128;

/**
 * Makes an app that uses one API, from the API's contract as the platform holds it. Its id depends on the API
 * alone, so that calling twice installs once.
 */
export function callParticipant(api: CallableApi): Participant {
  const actions = Object.fromEntries(Object.entries(api.rpc).map(([name, each]) => [name, action(each)]));
  const feeds = Object.fromEntries(Object.entries(api.feeds).map(([name, each]) => [name, liveView(each)]));
  const named = `${callerPrefix}${api.id.replace("@", "-")}`;
  const id = named.length <= longestId ? named : `${callerPrefix}x${digestHex(api.id)}`;
  return defineApp(id, { uses: [use(defineApi(api.id, { rpc: actions, feeds }))] }) as Participant;
}

function action(artifact: CallableRpc): RpcAction {
  const { input, output, idempotent, coalesce, download } = artifact;
  const errors = errorsOf(artifact);
  return rpc({
    ...(input === null ? {} : { input: Type.Unsafe<unknown>(input) }),
    ...(output === null ? {} : { output: Type.Unsafe<unknown>(output) }),
    errors,
    ...(idempotent === false ? {} : { idempotent }),
    coalesce,
    download,
  });
}

function liveView(artifact: CallableFeed): FeedAction {
  const { input, event } = artifact;
  return feed({
    ...(input === null ? {} : { input: Type.Unsafe<unknown>(input) }),
    event: Type.Unsafe<unknown>(event),
    errors: errorsOf(artifact),
  });
}

function errorsOf({ errors }: Pick<CallableRpc, "errors">): AnyDeclaredErrorClass[] {
  return Object.entries(errors).map(([name, data]) =>
    data === null ? defineError(name) : defineError(name, { data: Type.Unsafe<unknown>(data) }),
  );
}

/** Ids are lower case; a digest is not. */
function digestHex(text: string): string {
  return Buffer.from(digestOf(text), "base64url").toString("hex");
}
