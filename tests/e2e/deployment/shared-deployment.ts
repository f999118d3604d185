import { type CallbackReceiver, openCallbackReceiver } from '../../helpers/callback-receiver.ts';
import type { DeploymentUnderTest, Shape } from '../../helpers/deployment-under-test.ts';
import { type OtlpSink, openOtlpSink } from '../../helpers/otlp-sink.ts';

/** One deployment, which the suites of a file share: ten processes take longer to start than most suites take. */
export interface SharedDeployment {
  deployment: DeploymentUnderTest;
  /** Runs may be called back there. */
  receiver: CallbackReceiver;
  /** Of its traces. */
  sink: OtlpSink;
  /** Ends all three in order. */
  stop(): Promise<void>;
}

/** Long enough for two posts to lie within it on a busy machine. */
export const COALESCE_MS = 1_000;
/** In all: two that fail and one more. The pauses between them are 1 s and 2 s, a fifth more or less. */
export const CALLBACK_ATTEMPTS = 3;
export const COLLECTOR_KEY = 'collector-key-5150';
/** Of spans; by default they wait for five seconds. */
const EXPORT_EVERY_MS = 500;

export async function startShared({ start }: Shape): Promise<SharedDeployment> {
  const receiver = await openCallbackReceiver();
  const sink = await openOtlpSink();
  const deployment = await start({
    STREAMING: 'true',
    COALESCE_MS: String(COALESCE_MS),
    OUTBOUND_ALLOW_HOSTS: receiver.host,
    AUTONOMOUS_CALLBACK_MAX_RETRIES: String(CALLBACK_ATTEMPTS),
    OTEL_EXPORTER_OTLP_ENDPOINT: sink.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${COLLECTOR_KEY}`,
    OTEL_BSP_SCHEDULE_DELAY: String(EXPORT_EVERY_MS),
  });
  return {
    deployment,
    receiver,
    sink,
    stop: async () => {
      await deployment.stop();
      await receiver.close();
      await sink.close();
    },
  };
}
