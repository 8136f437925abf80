import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MergeRecord, StreamMerge } from "./stream-merge.ts";

interface Rec extends MergeRecord {
  readonly sequence: number;
}

function rec(subject: string, sequence: number, previous = 0): Rec {
  return { subject, sequence, previous, timeText: `s${sequence}`, expires: false, bytes: 10 };
}

/** A message of a stream that was made anew. */
function other(subject: string, sequence: number): Rec {
  return { ...rec(subject, sequence), timeText: `other${sequence}` };
}

/** A stream that keeps the last message of each subject. */
class Model {
  sequence = 0;
  readonly last = new Map<string, Rec>();

  put(subject: string): Rec {
    this.sequence += 1;
    const record = rec(subject, this.sequence, this.last.get(subject)?.sequence ?? 0);
    this.last.set(subject, record);
    return record;
  }

  page(from: number, limit: number) {
    const all = [...this.last.values()].filter(({ sequence }) => sequence >= from);
    all.sort((a, b) => a.sequence - b.sequence);
    return { records: all.slice(0, limit), complete: all.length <= limit };
  }
}

const everything = { contiguous: true, ages: false };
const some = { contiguous: false, ages: false };

describe("a stream that is read and heard", () => {
  it("says once that it is complete, also where it is empty", () => {
    const merge = new StreamMerge<Rec>(everything);
    expect(merge.beginPage()).toBe(1);
    expect(merge.endPage({ records: [], complete: true })).toEqual({ items: ["ready"], replaced: false });
    expect(merge.mode).toBe("live");
    merge.recheck();
    merge.beginPage();
    expect(merge.endPage({ records: [], complete: true }).items).toEqual([]);
  });

  it("is complete only when a page found nothing new: what moved while the last one was read is not left out", () => {
    const merge = new StreamMerge<Rec>(everything);
    merge.beginPage();
    expect(merge.endPage({ records: [rec("a", 1)], complete: true }).items).toEqual([rec("a", 1)]);
    expect(merge.mode).toBe("reading");
    expect(merge.beginPage()).toBe(2);
    expect(merge.endPage({ records: [], complete: true }).items).toEqual(["ready"]);
  });

  it("is complete in the end also where writes never cease", () => {
    const merge = new StreamMerge<Rec>(everything);
    const items = [];
    for (let sequence = 1; sequence < 8; sequence += 1) {
      merge.beginPage();
      items.push(...merge.endPage({ records: [rec("a", sequence)], complete: true }).items);
    }
    expect(items.filter((item) => item === "ready")).toHaveLength(1);
  });

  it("passes on what came live while a page was read, and nothing of it twice", () => {
    const merge = new StreamMerge<Rec>(everything);
    merge.beginPage();
    expect(merge.live(rec("a", 1))).toBe(false);
    expect(merge.live(rec("b", 2))).toBe(false);
    merge.endPage({ records: [rec("a", 1)], complete: true });
    merge.beginPage();
    merge.live(rec("b", 2));
    merge.live(rec("c", 3));
    const { items } = merge.endPage({ records: [rec("b", 2)], complete: true });
    expect(items).toEqual([rec("b", 2)]);
    merge.beginPage();
    merge.live(rec("c", 3));
    merge.live(rec("d", 4));
    expect(merge.endPage({ records: [], complete: true }).items).toEqual(["ready", rec("c", 3), rec("d", 4)]);
    expect(merge.live(rec("d", 4))).toBe(false);
  });

  it("reads again where something was lost", () => {
    const merge = new StreamMerge<Rec>(everything);
    merge.beginPage();
    merge.endPage({ records: [], complete: true });
    expect(merge.live(rec("a", 1))).toBe(true);
    expect(merge.live(rec("b", 3))).toBe(false);
    expect(merge.mode).toBe("reading");
    expect(merge.beginPage()).toBe(2);
  });

  it("notices a loss on a subject also where it hears only a part of the stream", () => {
    const merge = new StreamMerge<Rec>(some);
    merge.beginPage();
    merge.endPage({ records: [], complete: true });
    expect(merge.live(rec("a", 5))).toBe(true);
    expect(merge.live(rec("a", 9, 5))).toBe(true);
    expect(merge.live(rec("a", 12, 11))).toBe(false);
    expect(merge.mode).toBe("reading");
  });

  it("keeps few live messages while it reads, and reads another page when there were more", () => {
    const merge = new StreamMerge<Rec>(everything);
    merge.beginPage();
    merge.endPage({ records: [], complete: true });
    merge.interrupt();
    merge.beginPage();
    for (let sequence = 1; sequence < 5_000; sequence += 1) merge.live(rec("a", sequence, sequence - 1));
    merge.endPage({ records: [rec("a", 4_000)], complete: true });
    expect(merge.mode).toBe("reading");
  });
});

describe("a stream that is not the one that it was", () => {
  function following() {
    const merge = new StreamMerge<Rec>(everything);
    merge.beginPage();
    merge.endPage({ records: [rec("a", 1), rec("b", 2)], complete: true });
    merge.beginPage();
    merge.endPage({ records: [], complete: true });
    merge.recheck();
    expect(merge.beginPage()).toBe(2);
    return merge;
  }

  it("is known by its last message, which is where it was", () => {
    expect(following().endPage({ records: [rec("b", 2)], complete: true }).replaced).toBe(false);
  });

  it("is the same when something newer took the place of the last message", () => {
    const merge = following();
    expect(merge.endPage({ records: [rec("c", 3), rec("b", 4)], complete: true }).items).toHaveLength(2);
  });

  it("was emptied", () => {
    expect(following().endPage({ records: [], complete: true }).replaced).toBe(true);
  });

  it("was made anew, with as many messages as before", () => {
    expect(following().endPage({ records: [other("b", 2)], complete: true }).replaced).toBe(true);
  });

  it("was made anew and has grown larger", () => {
    const merge = following();
    expect(merge.endPage({ records: [rec("x", 3)], complete: false }).replaced).toBe(false);
    merge.beginPage();
    expect(merge.endPage({ records: [rec("y", 4)], complete: true }).replaced).toBe(true);
  });

  it("proves nothing where messages go away by age", () => {
    const merge = new StreamMerge<Rec>({ contiguous: true, ages: true });
    merge.beginPage();
    merge.endPage({ records: [rec("a", 1)], complete: true });
    merge.recheck();
    merge.beginPage();
    expect(merge.endPage({ records: [], complete: true }).replaced).toBe(false);
  });

  it("is looked at when a live message has a sequence from the past", () => {
    const merge = following();
    merge.endPage({ records: [rec("b", 2)], complete: true });
    expect(merge.live(other("x", 1))).toBe(false);
    expect(merge.beginPage()).toBe(2);
  });
});

describe("any history of writes, losses and pauses", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("put" as const), key: fc.nat(5), lost: fc.nat(9) }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("page" as const), limit: fc.integer({ min: 1, max: 4 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("recheck" as const) }) },
  );

  it.each([
    ["the whole of it", everything],
    ["a part", some],
  ])("leads to the newest value of every key, in order, each once: %s", (_name, options) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const model = new Model();
        const merge = new StreamMerge<Rec>(options);
        const seen: Rec[] = [];
        let ready = 0;
        let open = false;
        const take = (items: readonly (Rec | "ready")[]) => {
          for (const item of items) {
            if (item === "ready") ready += 1;
            else seen.push(item);
          }
        };
        const read = (limit: number) => {
          if (!open) return;
          open = false;
          const outcome = merge.endPage(model.page(from, limit));
          expect(outcome.replaced).toBe(false);
          take(outcome.items);
        };
        let from = 0;
        const ask = () => {
          if (open || merge.mode === "live") return;
          from = merge.beginPage();
          open = true;
        };
        for (const now of steps) {
          ask();
          if (now.do === "put") {
            const record = model.put(`k${now.key}`);
            if (now.lost > 0 && merge.live(record)) seen.push(record);
          } else if (now.do === "page") read(now.limit);
          else if (!open) merge.recheck();
        }
        read(3);
        merge.recheck();
        for (let round = 0; round < 40 && merge.mode === "reading"; round += 1) {
          ask();
          read(3);
        }
        expect(merge.mode).toBe("live");
        expect(ready).toBe(1);
        for (const part of options.contiguous
          ? [seen]
          : [...model.last.keys()].map((key) => seen.filter(({ subject }) => subject === key))) {
          const sequences = part.map(({ sequence }) => sequence);
          expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
        }
        const newest = new Map(seen.map((record) => [record.subject, record.sequence]));
        for (const [subject, { sequence }] of model.last) expect(newest.get(subject)).toBe(sequence);
      }),
      { numRuns: 2_000 },
    );
  });
});
