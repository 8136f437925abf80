import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { AUTHORIZATION_STREAM, NOTICE_FILTER, NOTICE_STREAM } from "@trellis/protocol";

type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name">;

/** The broker answers a create of a stream that exists with another configuration by this code. */
const existsDifferently = 10058;

const common = {
  allow_direct: true,
  allow_msg_ttl: true,
  allow_rollup_hdrs: false,
  max_msgs_per_subject: 1,
} as const;

/** Authorizations and grants by digest; applications read them by direct gets only. */
export const authorizationStream: WantedStream = {
  ...common,
  name: AUTHORIZATION_STREAM,
  subjects: ["authorization.*", "grants.*"],
};

/** Revocations, connection ends and route changes: the last of each subject, and each once as it comes. */
export const noticeStream: WantedStream = {
  ...common,
  name: NOTICE_STREAM,
  subjects: ["notice.>"],
  republish: { src: "notice.>", dest: NOTICE_FILTER },
};

/**
 * Creates or updates a stream of the control plane's own account and reads the flags back: an older server
 * drops those that it does not know without a word. `empty` tells that what it held must be written again; `created`
 * names the stream among those that were lost before it.
 */
export async function ensureStream(
  manager: JetStreamManager,
  wanted: WantedStream,
  replicas: number,
): Promise<{ empty: boolean; created: string }> {
  const config = { ...wanted, num_replicas: replicas };
  const info = await createOrUpdate(manager, config);
  for (const flag of [
    "allow_direct",
    "allow_msg_ttl",
    "allow_rollup_hdrs",
    "max_msgs_per_subject",
  ] as const) {
    if ((info.config[flag] ?? false) !== config[flag]) {
      throw new Error(
        `The broker did not take "${flag}" of stream ${config.name}: Trellis needs NATS 2.12 or newer.`,
      );
    }
  }
  return { empty: info.state.messages === 0, created: info.created };
}

async function createOrUpdate(manager: JetStreamManager, config: WantedStream): Promise<StreamInfo> {
  try {
    return await manager.streams.add(config);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== existsDifferently) throw error;
    return manager.streams.update(config.name, config);
  }
}
