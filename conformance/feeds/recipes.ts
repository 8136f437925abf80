// How the outputs of the feed vectors follow from their inputs. Bytes are hexadecimal.

import {
  decodeFeedChallenge,
  decodeFeedControl,
  decodeFeedFrame,
  deriveFeedKey,
  encodeFeedChallenge,
  encodeFeedControl,
  encodeFeedEnd,
  encodeFeedItems,
  type FeedChallengeKind,
  type FeedEndReason,
  type FeedNote,
  FeedReceiver,
  FeedSender,
  toHex,
} from "@trellis/protocol";
import { bytes, type Recipes, recipe } from "../protocol/recipe.ts";

interface SessionInput {
  readonly session: string;
  readonly sequence: number;
  readonly subject: string;
  readonly key: string;
  readonly payload: string;
}

type NoteInput = Omit<FeedNote, "session"> & { readonly session: string };

/** One step of the provider's side: a note, a frame of so many bytes, an end, a challenge, or the look at the clock. */
type SenderStep = { readonly at: number } & (
  | { readonly note: Omit<FeedNote, "session"> }
  | { readonly frame: number }
  | { readonly end: number }
  | { readonly asked: number }
  | { readonly due: true }
);

/** One step of the consumer's side. */
type ReceiverStep = { readonly at: number } & (
  | { readonly items: number; readonly sequence: number; readonly bytes: number }
  | { readonly handed: number }
  | { readonly report: true }
  | { readonly due: true }
);

const decoders = { session: decodeFeedFrame, challenge: decodeFeedChallenge, control: decodeFeedControl };

export const feedRecipes: Recipes = {
  feedKey: recipe(
    (
      port,
      input: { replyKey: string; connection: string; subject: string; session: string; data: string },
    ) => {
      const replyKey = port.macKey(bytes(input.replyKey));
      const key = deriveFeedKey(port, { ...input, replyKey, session: bytes(input.session) });
      return toHex(port.mac(key, bytes(input.data), new Uint8Array(0)));
    },
  ),
  items: recipe((port, input: SessionInput) => toHex(encodeFeedItems(port, placed(port, input)))),
  end: recipe((port, input: SessionInput & { reason: FeedEndReason }) =>
    toHex(encodeFeedEnd(port, { ...placed(port, input), reason: input.reason })),
  ),
  challenge: recipe(
    (
      port,
      input: {
        kind: FeedChallengeKind;
        epoch: number;
        nonce: number;
        sessions: string[];
        subject: string;
        key: string;
      },
    ) =>
      toHex(
        encodeFeedChallenge(port, {
          ...input,
          sessions: input.sessions.map(bytes),
          key: port.macKey(bytes(input.key)),
        }),
      ),
  ),
  control: recipe(
    (
      port,
      input: {
        header: { epoch: number; digest: string; counter: number; issuedAt: number };
        notes: NoteInput[];
        subject: string;
        reply: string;
        key: string;
      },
    ) =>
      toHex(
        encodeFeedControl(port, {
          header: { ...input.header, digest: bytes(input.header.digest) },
          notes: input.notes.map((note) => ({ ...note, session: bytes(note.session) })),
          subject: input.subject,
          reply: input.reply,
          key: port.macKey(bytes(input.key)),
        }),
      ),
  ),
  decode: recipe((port, input: { as: keyof typeof decoders; frame: string }) =>
    decoders[input.as](port, bytes(input.frame)) === undefined ? "refused" : "decoded",
  ),
  sender: recipe((_port, input: { nonce: number; steps: SenderStep[] }) => {
    const sender = new FeedSender(input.nonce, 0);
    return input.steps.map((step) => runSender(sender, step));
  }),
  receiver: recipe((_port, input: { steps: ReceiverStep[] }) => {
    const receiver = new FeedReceiver(0);
    return input.steps.map((step) => runReceiver(receiver, step));
  }),
};

function placed(port: Parameters<Recipes[string]>[0], input: SessionInput) {
  return { ...input, session: bytes(input.session), key: port.macKey(bytes(input.key)) };
}

function runSender(sender: FeedSender, step: SenderStep): unknown {
  if ("frame" in step) {
    const allowed = sender.allows(step.frame, step.at);
    if (allowed) sender.add(new Uint8Array(step.frame));
    return { allowed, unconsumed: sender.unconsumed };
  }
  if ("end" in step) sender.end(new Uint8Array(step.end));
  if ("asked" in step) sender.asked(step.asked, step.at);
  if ("due" in step) return { due: sender.due(step.at) ?? "nothing" };
  if (!("note" in step)) return { phase: sender.phase };
  const { resend, ...decision } = sender.onNote({ ...step.note, session: new Uint8Array(16) }, step.at);
  const happened = Object.entries(decision).flatMap(([name, is]) => (is ? [name] : []));
  return { phase: sender.phase, happened, resent: resend.length, unconsumed: sender.unconsumed };
}

function runReceiver(receiver: FeedReceiver, step: ReceiverStep): unknown {
  if ("report" in step) return receiver.report();
  if ("due" in step) return { due: receiver.due(step.at) ?? "nothing" };
  if ("handed" in step) {
    let due = false;
    for (let count = 0; count < step.handed; count += 1) due = receiver.handed() || due;
    return { reportDue: due, consumed: receiver.consumed };
  }
  const verdict = receiver.onItems(step.sequence, step.bytes, step.at);
  return { verdict, ...(verdict === "take" && { reportDue: receiver.took(step.items, step.bytes) }) };
}
