import { AckPolicy, DeliverPolicy, type JetStreamManager, type JsMsg } from "@nats-io/jetstream";
import { EVENT_HEADERS, EVENT_STREAM, readEventHeaders, readEventSubject } from "@trellis/protocol";
import { findAuthorization } from "../storage/authorizations.ts";
import type { Queries } from "../storage/storage.ts";

export interface RecentInput {
  readonly limit?: number;
  readonly after?: number;
  readonly since?: number;
  readonly events?: readonly string[];
}

/** How far back the newest events of some names are looked for. */
const window = 10_000;
const maxShown = 4_096;
const inactiveNs = 10_000_000_000;
const fetchMs = 1_000;

/** Events of the stream, oldest first: those behind `after`, those since an instant, or the newest. */
export async function recentEvents(manager: JetStreamManager, queries: Queries, input: RecentInput) {
  const { limit = 20, after, since } = input;
  const { state } = await manager.streams.info(EVENT_STREAM);
  // A stream that was made anew begins at 1 again, below where the reader was.
  const from = after === undefined || after > state.last_seq ? undefined : after;
  if (state.messages === 0 || from === state.last_seq) return { events: [], sequence: state.last_seq };
  const isNewest = from === undefined && since === undefined;
  const start =
    from === undefined
      ? Math.max(1, state.last_seq - (input.events === undefined ? limit : window) + 1)
      : from + 1;
  const { name } = await manager.consumers.add(EVENT_STREAM, {
    ack_policy: AckPolicy.None,
    mem_storage: true,
    inactive_threshold: inactiveNs,
    filter_subjects: filtersOf(input.events),
    ...(from === undefined && since !== undefined
      ? { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(since).toISOString() }
      : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start }),
  });
  const found: JsMsg[] = [];
  let last = state.last_seq;
  try {
    const consumer = await manager.jetstream().consumers.get(EVENT_STREAM, name);
    const { num_pending } = await consumer.info();
    const wanted = isNewest ? num_pending : Math.min(limit, num_pending);
    for (let left = wanted; left > 0; ) {
      let got = 0;
      for await (const message of await consumer.fetch({
        max_messages: Math.min(left, 200),
        expires: fetchMs,
      })) {
        got += 1;
        found.push(message);
        if (found.length > limit) found.shift();
      }
      if (got === 0) break;
      left -= got;
    }
    if (!isNewest && wanted < num_pending) last = found.at(-1)?.seq ?? last;
  } finally {
    await manager.consumers.delete(EVENT_STREAM, name).catch(() => false);
  }
  return { events: await Promise.all(found.map((message) => view(queries, message))), sequence: last };
}

/** Subjects of events of these names, in whatever API. Replays are for one consumer, and no events of anybody. */
function filtersOf(names: readonly string[] | undefined): string[] {
  const tokens = names?.map((name) => name.replaceAll(".", "_")).filter((token) => /^\w+$/.test(token)) ?? [
    "*",
  ];
  return [...new Set(tokens)].flatMap((token) => [`events.v1.*.${token}`, `events.v1.*.${token}.>`]);
}

async function view(queries: Queries, message: JsMsg) {
  const address = readEventSubject(message.subject);
  const header = (name: string) => message.headers?.get(name) ?? "";
  const read = readEventHeaders(header);
  const by = read.ok ? await findAuthorization(queries, read.stamp.proof.authorization) : undefined;
  return {
    sequence: message.seq,
    api: address?.api ?? "",
    event: address?.action ?? message.subject,
    params: [...(address?.params ?? [])],
    id: header(EVENT_HEADERS.id),
    time: read.ok ? read.stamp.time : message.time.getTime(),
    storedAt: message.time.getTime(),
    ...(by === undefined ? {} : { deployment: by.deploymentId }),
    bytes: message.data.length,
    ...(message.data.length > maxShown ? {} : { payload: message.string() }),
  };
}
