import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { EVENT_HEADERS, readEventSubject } from "@trellis/protocol";
import { err, ok } from "@trellis/result";
import { NotKnown } from "../core/errors.ts";
import type { CoreDeps } from "../core/handlers.ts";
import { nextCursor, readPage } from "../core/page.ts";
import type { Plane } from "../plane.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import { deploymentIdOf, findDeployment, findDeploymentNamed } from "../storage/deployments.ts";
import { listConsumers } from "../storage/resources.ts";
import { BrokerRefused, type EventsHandlers } from "./api.ts";
import { consumerView } from "./consumer-view.ts";
import { DeadLetterStore, type StoredLetter } from "./dead-letter-store.ts";
import { recentEvents } from "./recent.ts";

/** Bytes of a payload that an answer carries. */
const maxShown = 256 * 1024;

/** What the handlers share. */
interface Desk {
  readonly plane: Plane;
  readonly actor: CoreDeps["actor"];
  readonly letters: DeadLetterStore;
  manager(): Promise<JetStreamManager>;
}

/** The administrator's handlers of the events API over one control plane. */
export function eventsHandlers(plane: Plane, actor: CoreDeps["actor"]): EventsHandlers {
  const { links, storage } = plane;
  const manager = () => jetstreamManager(links.app, { checkAPI: false });
  const letters = new DeadLetterStore(links.app, manager, jetstream(links.app, { checkAPI: false }));
  const desk: Desk = { plane, actor, letters, manager };
  return {
    "Events.Consumers.List": (input) => listOfConsumers(desk, input),
    ...letterHandlers(desk),
    "Events.DeadLetters.Replay": (input) => settle(desk, input, "replay"),
    "Events.DeadLetters.Discard": (input) => settle(desk, input, "discard"),
    "Events.Recent": async (input) => ok(await recentEvents(await manager(), storage.queries, input)),
  };
}

async function listOfConsumers(
  { plane, letters, manager }: Desk,
  input: Parameters<EventsHandlers["Events.Consumers.List"]>[0],
): ReturnType<EventsHandlers["Events.Consumers.List"]> {
  const { queries } = plane.storage;
  const page = readPage("consumers", input);
  if (page.isErr()) return err(page.error);
  const filter = await deploymentIdOf(queries, input.deployment);
  const { rows, next } = await listConsumers(queries, page.value, filter);
  const consumers = await Promise.all(
    rows.map(async (row) => {
      const deployment = await findDeployment(queries, row.deploymentId);
      if (deployment === undefined) return [];
      return [await consumerView(await manager(), letters, { row, deployment })];
    }),
  );
  return ok({ consumers: consumers.flat(), ...nextCursor("consumers", next) });
}

function letterHandlers({
  plane,
  letters,
}: Desk): Pick<EventsHandlers, "Events.DeadLetters.List" | "Events.DeadLetters.Get"> {
  const named = (id: string) => findDeploymentNamed(plane.storage.queries, id);
  return {
    "Events.DeadLetters.List": async (input) => {
      const deployment = await named(input.deployment);
      if (deployment === undefined) return unknown("deployment", input.deployment);
      const page = readPage("dead-letters", input);
      if (page.isErr()) return err(page.error);
      const { consumer: alias, reason } = input;
      if (alias !== undefined && !isAlias(alias)) return unknown("consumer", alias);
      const { letters: found, next } = await letters.page(deployment, {
        alias,
        after: Number(page.value.after ?? 0),
        limit: page.value.limit,
        fits: ({ letter }) => reason === undefined || letter.reason === reason,
      });
      const cursor = nextCursor("dead-letters", next === undefined ? undefined : String(next));
      return ok({ deadLetters: found.map((stored) => letterView(deployment, stored)), ...cursor });
    },

    "Events.DeadLetters.Get": async ({ deployment: id, consumer, sequence }) => {
      const deployment = await named(id);
      if (deployment === undefined) return unknown("deployment", id);
      const stored = isAlias(consumer) ? await letters.get(deployment, consumer, sequence) : undefined;
      if (stored === undefined) return unknown("dead letter", `${consumer} ${sequence}`);
      const payload = await letters.payload(stored);
      const shown = payload === undefined || payload.length > maxShown ? {} : { payload: textOf(payload) };
      return ok({ deadLetter: { ...letterView(deployment, stored), headers: headersOf(stored), ...shown } });
    },
  };
}

/** Settles letters one after another: a letter that is gone is no error, somebody else was quicker. */
async function settle(
  { plane, actor, letters }: Desk,
  input: { deployment: string; consumer: string; sequences: readonly number[] },
  action: "replay" | "discard",
) {
  const { storage, revoker } = plane;
  const deployment = await findDeploymentNamed(storage.queries, input.deployment);
  if (deployment === undefined) return unknown("deployment", input.deployment);
  if (!isAlias(input.consumer)) return unknown("consumer", input.consumer);
  const done: number[] = [];
  const missing: number[] = [];
  try {
    for (const sequence of input.sequences) {
      const stored = await letters.get(deployment, input.consumer, sequence);
      const settled = stored !== undefined && (await apply(letters, deployment, { stored, action }));
      (settled ? done : missing).push(sequence);
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const problem = `The broker refused: ${why}. ${done.length} of ${input.sequences.length} are done.`;
    return err(new BrokerRefused({ data: { problem } }));
  } finally {
    const details = { consumer: input.consumer, letters: String(done.length) };
    const entry = revoker.audit(actor.name, `events.${action}`, deployment.id, details);
    if (done.length > 0) await storage.mutate(entry, async () => undefined);
  }
  return ok({ done, missing });
}

async function apply(
  letters: DeadLetterStore,
  deployment: DeploymentRow,
  { stored, action }: { stored: StoredLetter; action: "replay" | "discard" },
): Promise<boolean> {
  if (action === "replay") return letters.replay(deployment, stored);
  await letters.discard(deployment, stored);
  return true;
}

function unknown(kind: string, id: string) {
  return err(new NotKnown({ data: { kind, id } }));
}

/** It becomes a token of a subject. */
function isAlias(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(text);
}

function letterView(deployment: DeploymentRow, { letter, alias, sequence, message }: StoredLetter) {
  const address = readEventSubject(letter.subject);
  const { reason, error, attempts, subject, storedAt, at } = letter;
  return {
    deployment: deployment.id,
    consumer: alias,
    sequence,
    api: address?.api ?? "",
    event: address?.action ?? "",
    id: message.header.get(EVENT_HEADERS.id),
    subject,
    reason,
    error,
    attempts,
    storedAt,
    at,
  };
}

function headersOf({ message }: StoredLetter): Record<string, string> {
  return Object.fromEntries([...message.header].map(([name, [value = ""]]) => [name, value]));
}

/** What is not UTF-8 is shown with replacement characters: it is for people to look at. */
function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}
