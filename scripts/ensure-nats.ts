import { findNatsServer, formatVersion } from "@trellis/control-plane/nats";

try {
  const { version, path, source } = await findNatsServer({
    onProgress: (text) => process.stdout.write(`› ${text}\n`),
  });
  process.stdout.write(`› nats-server ${formatVersion(version)} (${source}: ${path})\n`);
} catch (error) {
  process.stderr.write(`\n✗ ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
