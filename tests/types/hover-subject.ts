// What an editor is asked about by hover.test.ts; nothing runs this file.
import { TrellisClient } from "@trellis/runtime";
import { TrellisService } from "@trellis/runtime/service";
import { greeterService, helloApp } from "../../examples/01-hello/contracts/greeter.ts";
import { auditService, deskApp } from "../../examples/02-field-ops/contracts/audit.ts";

const client = await TrellisClient.connect({ participant: helloApp }).orThrow();
export const called = await client.rpc.greeter.hello({ name: "Ada" });
if (called.isErr()) {
  const failure = called.error;
  if (failure.kind === "declared") {
    const declaredType = failure.type;
    console.log(declaredType);
  }
  console.log(failure);
}

const service = await TrellisService.connect({ participant: greeterService }).orThrow();
service.handle.rpc.greeter.welcome(async ({ input, client: inner }) => {
  const { word } = await inner.rpc.words.translate({ word: "hello", language: input.language }).orThrow();
  return { text: word, translatedBy: "x" };
});

const desk = await TrellisClient.connect({ participant: deskApp }).orThrow();
for await (const entry of desk.feed.audit.live({ site: "a" })) console.log(entry);

const auditing = await TrellisService.connect({ participant: auditService }).orThrow();
auditing.handle.feed.audit.live(async ({ input: view, emit }) => {
  await emit({ id: "1", site: view.site, what: "seen" });
});
