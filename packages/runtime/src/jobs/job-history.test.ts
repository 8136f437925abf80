import { type JobQueueSubjects, jobQueueSubjects, transitionsOf } from "@trellis/protocol/jobs";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { JetStreamPublisher } from "../jetstream/publisher.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import { JobHistory } from "./job-history.ts";

const stream = "JOBS_history";
const timeoutMs = 5_000;
const body = new TextEncoder().encode("{}");
let streams: Streams;
let link: TestLink;
let subjects: JobQueueSubjects;

beforeAll(async () => {
  streams = await startStreams();
  await streams.manager.streams.add({ name: stream, subjects: ["jobs.>", "jobnotes.>"], allow_direct: true });
  link = await streams.link();
  subjects = jobQueueSubjects({ deployment: "shop", queue: "mail", secret: "0123456789abcdef".repeat(2) });
});
afterAll(() => streams[Symbol.asyncDispose]());

/** Writes transitions as workers do, each fenced by the one before, and notes; gives the sequences. */
async function write(job: string, events: readonly string[]): Promise<number[]> {
  const publisher = new JetStreamPublisher(link.requests);
  const sequences: number[] = [];
  let last = 0;
  for (const event of events) {
    const isNote = event.startsWith("note:");
    const subject = isNote
      ? `${subjects.notes}.${job}.${event.slice(5)}`
      : `${subjects.transitions}.${job}.${event}`;
    const fence = {
      headers: { "Nats-Expected-Last-Subject-Sequence-Subject": transitionsOf(subjects, job) },
      expectLastSubjectSequence: last,
    };
    const { seq } = await publisher.publish(subject, body, { timeoutMs, ...(isNote ? {} : fence) });
    if (!isNote) last = seq;
    sequences.push(seq);
  }
  return sequences;
}

function look() {
  const reader = new StreamReader(link.requests, stream);
  return { history: new JobHistory(reader, subjects, timeoutMs), pages: vi.spyOn(reader, "page") };
}

const twice = ["created.normal", "started", "retry", "started", "retry", "started", "completed"];

it.each([
  ["a job that was settled at once", ["created.high", "completed"]],
  ["one that waits", ["created.delayed"]],
  ["one that was tried again and again", twice],
  [
    "one that was replayed",
    [...twice.slice(0, -1), "dead", "retried.low", "started", "failed", "retried.low"],
  ],
])("finds every transition of %s, and reads no more of the stream than that", async (name, events) => {
  const job = name.replaceAll(" ", "_");
  const written = await write(job, events);
  await write(`${job}-other`, ["created.normal", "completed"]);
  const { history, pages } = look();
  expect((await history.transitions(job)).map(({ sequence }) => sequence)).toEqual(written);
  expect((await history.events(job)).map(({ sequence }) => sequence)).toEqual(written);
  expect(pages).not.toHaveBeenCalled();
});

it("has every note that counts, and the newest of the others", async () => {
  const events = ["created.normal", "started", "note:logged", "note:progress", "note:logged", "completed"];
  const written = await write("noted", events);
  const { history } = look();
  expect((await history.events("noted")).map(({ sequence }) => sequence)).toEqual(written);
  const quiet = await write("quiet", ["created.normal", "started", "note:progress", "note:progress"]);
  const { history: second, pages } = look();
  expect((await second.events("quiet")).map(({ sequence }) => sequence)).toEqual([
    ...quiet.slice(0, 2),
    quiet[3],
  ]);
  expect(pages).not.toHaveBeenCalled();
});

it("takes what is left of a job of which something is gone, or whose writer named nobody", async () => {
  const written = await write("cut", twice);
  await streams.manager.streams.deleteMessage(stream, written[2] ?? 0);
  const { history } = look();
  const left = written.filter((_, index) => index !== 2);
  expect((await history.transitions("cut")).map(({ sequence }) => sequence)).toEqual(left);
  const { seq } = await new JetStreamPublisher(link.requests).publish(
    `${subjects.transitions}.bare.created.normal`,
    body,
    { timeoutMs },
  );
  expect((await history.transitions("bare")).map(({ sequence }) => sequence)).toEqual([seq]);
  expect(await history.transitions("nobody")).toEqual([]);
  expect(await history.events("nobody")).toEqual([]);
});
