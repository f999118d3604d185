import { headers } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { BlobStore } from '../bus.ts';
import { MAX_BODY_BYTES } from '../large-bodies.ts';
import type { NatsLink } from './connection/link.ts';
import { storeMessage } from './connection/store-message.ts';
import { streams } from './streams.ts';

/** Brokers slow down with larger messages. */
const PART_BYTES = 256 * 1024;
/** Parts in flight, per blob. */
const WINDOW_PARTS = 4;
const PARTS_HEADER = 'Switchyard-Parts';
/** Ids become part of a subject. */
const BLOB_ID = /^[0-9A-Z]{26}$/;

/** Blobs as messages `blob.<id>.<part>`, expired by the broker. */
export function natsBlobStore(link: NatsLink, budgetMs: number, nowMs: () => number): BlobStore {
  async function putPart(id: string, part: number, parts: number, bytes: Uint8Array): Promise<void> {
    const subject = `blob.${id}.${part}`;
    const partHeaders = headers();
    partHeaders.set(PARTS_HEADER, String(parts));
    await link.retries.run('store a part of a blob', budgetMs, (timeoutMs) =>
      storeMessage(link.requests, { subject, messageId: `${id}.${part}`, bytes, extraHeaders: partHeaders }, timeoutMs),
    );
  }

  /** Null is trusted only from the leader: a direct get may reach a lagging replica. */
  async function getPart(id: string, part: number): Promise<{ bytes: Uint8Array; parts: number } | null> {
    const query = { last_by_subj: `blob.${id}.${part}` };
    const { manager } = link;
    const found = await link.retries.run(
      'fetch a part of a blob',
      budgetMs,
      async () => (await manager.direct.getMessage(streams.blobs.name, query)) ?? (await manager.streams.getMessage(streams.blobs.name, query)),
    );
    return found === null ? null : { bytes: found.data, parts: Number(found.header.get(PARTS_HEADER)) };
  }

  return {
    async put(bytes) {
      link.retries.assertOpen();
      if (bytes.byteLength > MAX_BODY_BYTES) throw new SwitchyardError('bus.body_too_large', `a blob holds at most ${MAX_BODY_BYTES} bytes`);
      const id = ulid(nowMs());
      const parts = Math.max(1, Math.ceil(bytes.byteLength / PART_BYTES));
      // Part 0 is written last and read first, so an unfinished blob does not exist.
      await inWindows(parts - 1, (index) => putPart(id, index + 1, parts, bytes.subarray((index + 1) * PART_BYTES, (index + 2) * PART_BYTES)));
      await putPart(id, 0, parts, bytes.subarray(0, PART_BYTES));
      return id;
    },
    async get(id) {
      link.retries.assertOpen();
      if (!BLOB_ID.test(id)) return null;
      const first = await getPart(id, 0);
      if (first === null) return null;
      const pieces: Uint8Array[] = [first.bytes];
      let isWhole = true;
      await inWindows(first.parts - 1, async (index) => {
        const piece = isWhole ? await getPart(id, index + 1) : null;
        if (piece === null) isWhole = false;
        else pieces[index + 1] = piece.bytes;
      });
      return isWhole ? Buffer.concat(pieces) : null;
    },
  };
}

/** At most `WINDOW_PARTS` at a time. */
async function inWindows(count: number, action: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const walk = async () => {
    for (let index = next; index < count; index = next) {
      next += 1;
      await action(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(WINDOW_PARTS, count) }, walk));
}
