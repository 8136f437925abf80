import { TrellisService } from "@trellis/runtime/service";
import { translatorService, UnknownLanguage } from "../contracts/translator.ts";

const hello: Record<string, string> = { de: "Hallo", fr: "Bonjour", it: "Ciao", ja: "Konnichiwa" };

const service = await TrellisService.connect({ participant: translatorService }).orThrow();

service.handle.rpc.words.translate(({ input }) => {
  const word = hello[input.language];
  if (word === undefined) {
    return new UnknownLanguage({ data: { language: input.language, known: Object.keys(hello) } });
  }
  return { word };
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void service.stop());
await service.wait();
