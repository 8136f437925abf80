import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  JetStreamApiError,
  jetstreamManager,
} from "@nats-io/jetstream";
import { EVENT_STREAM, eventFilter, type Grants, listenerName } from "@trellis/protocol";
import { err, ok } from "@trellis/result";
import { ListenRefused } from "@trellis/runtime/node";
import { eventOf } from "../authority/artifact.ts";
import type { Plane } from "../plane.ts";
import { findAuthorization, readContent } from "../storage/authorizations.ts";
import { findConnection } from "../storage/connections.ts";
import type { ListenHandler } from "./api.ts";

/** Nobody has asked it for anything for so long: the broker removes it. */
const inactiveNs = 60_000_000_000;
const consumerUnknown = 10_014;

/**
 * Makes the caller's own ephemeral consumers: under a name that its connection's permissions hold, and only of
 * events that its grants name. One of that name that is there is replaced.
 */
export function listenHandler(plane: Plane, connection: string): ListenHandler {
  return async (input) => {
    const params = await paramsOf(plane, connection, input);
    if (params === undefined)
      return refuse(`The contract of this deployment does not use ${input.event} of ${input.api}.`);
    const given = input.params ?? {};
    const stranger = Object.keys(given).find((name) => !params.includes(name));
    if (stranger !== undefined) return refuse(`${input.event} has no parameter "${stranger}".`);
    const manager = await jetstreamManager(plane.links.app, { checkAPI: false });
    const consumer = listenerName(connection, input.slot);
    try {
      await manager.consumers.delete(EVENT_STREAM, consumer);
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === consumerUnknown)) throw error;
    }
    const { state } = await manager.streams.info(EVENT_STREAM);
    await manager.consumers.add(EVENT_STREAM, {
      name: consumer,
      ack_policy: AckPolicy.None,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: inactiveNs,
      filter_subject: eventFilter({
        api: input.api,
        action: input.event,
        params: params.map((name) => (Object.hasOwn(given, name) ? given[name] : undefined)),
      }),
      ...beginning(input, state.last_seq),
    });
    return ok({ stream: EVENT_STREAM, consumer, last: state.last_seq });
  };
}

type Input = Parameters<ListenHandler>[0];

/** Where it begins. A stream that was made anew is behind where the listener was: then all of it is new. */
function beginning({ replay, after }: Input, last: number): Partial<ConsumerConfig> {
  if (after !== undefined)
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after > last ? 1 : after + 1 };
  if (replay === "all") return { deliver_policy: DeliverPolicy.All };
  if (replay === "new") return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: last + 1 };
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(replay.since).toISOString() };
}

/** The parameters of an event that the connection's newest authorization lets it consume; `undefined`: none does. */
async function paramsOf(
  { storage, catalog }: Plane,
  connection: string,
  { api, event }: Input,
): Promise<readonly string[] | undefined> {
  const { queries } = storage;
  const row = await findConnection(queries, connection);
  const authorization =
    row === undefined ? undefined : await findAuthorization(queries, row.authorizationDigest);
  if (row === undefined || authorization === undefined || authorization.revokedAt !== null) return undefined;
  const body = await readContent(queries, authorization.grantsDigest);
  const grants = body === undefined ? undefined : (JSON.parse(body) as Grants);
  const isGranted = grants?.calls.some((call) => call.api === api && call.consumes.includes(event)) ?? false;
  const artifact = await catalog.artifact(queries, row.participantId, row.participantDigest);
  return isGranted && artifact !== undefined ? eventOf(artifact, { api, event })?.params : undefined;
}

function refuse(problem: string) {
  return err(new ListenRefused({ data: { problem } }));
}
