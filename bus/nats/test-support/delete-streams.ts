import type { JetStreamManager } from '@nats-io/jetstream';

/** One pass nearly always suffices. */
const MAX_PASSES = 20;

/** Deletes all streams of a test's broker. nats-server 2.9 sometimes fails on its own files meanwhile, so it retries. @throws when streams are left */
export async function deleteStreams({ streams }: JetStreamManager): Promise<void> {
  let trouble: unknown = null;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const names: string[] = [];
    for await (const { config } of streams.list()) names.push(config.name);
    if (names.length === 0) return;
    for (const name of names) {
      await streams.delete(name).catch((error) => {
        trouble = error;
      });
    }
  }
  throw new Error('the streams of the last case could not be deleted', { cause: trouble });
}
