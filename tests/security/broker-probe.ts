import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";

const refusals = new WeakMap<NatsConnection, Map<string, number>>();

/** How often the broker has refused what the connection published, by subject. */
function refusalsOf(nats: NatsConnection): ReadonlyMap<string, number> {
  const known = refusals.get(nats);
  if (known !== undefined) return known;
  const counts = new Map<string, number>();
  refusals.set(nats, counts);
  void (async () => {
    for await (const status of nats.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const { operation, subject } = status.error;
      if (operation === "publish") counts.set(subject, (counts.get(subject) ?? 0) + 1);
    }
  })();
  return counts;
}

/** Whether the broker lets the connection publish there, under a reply subject that may be somebody else's. */
export async function mayPublish(
  nats: NatsConnection,
  subject: string,
  message: { body?: string; reply?: string } = {},
): Promise<boolean> {
  const counts = refusalsOf(nats);
  const before = counts.get(subject) ?? 0;
  nats.publish(subject, message.body ?? "", message.reply === undefined ? {} : { reply: message.reply });
  // The server answers in order: a refusal comes before the pong. Its listener is told a microtask or two later.
  await nats.flush();
  await new Promise(setImmediate);
  return (counts.get(subject) ?? 0) === before;
}

/** Whether the broker lets the connection subscribe there. */
export async function maySubscribe(nats: NatsConnection, subject: string, queue?: string): Promise<boolean> {
  let refused = false;
  const subscription = nats.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (failure) => {
      refused ||= failure instanceof PermissionViolationError;
    },
  });
  await nats.flush();
  subscription.unsubscribe();
  await nats.flush();
  return !refused;
}
