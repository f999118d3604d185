import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { BlobStore } from '../bus.ts';
import { MAX_BODY_BYTES } from '../large-bodies.ts';
import type { Closable, ComponentDeps } from './types.ts';
import { vacuumer } from './vacuum.ts';

const RETAIN_MS = 24 * 3_600_000;
/** One row. The embedded database runs on our event loop and never returns memory: 30 MiB at once took a second and 400 MB. */
const PART_BYTES = 1024 * 1024;
/** Past it new blobs are refused. */
const MAX_STORED_BYTES = 2 * 1024 * 1024 * 1024;
/** Expired rows that one `put` deletes: more than it writes, so that they can't accumulate. */
const SWEEP_PARTS = 64;

/** Blobs as rows of 1 MiB. Expired ones are never returned, and deleted by the next `put`. */
export async function openBlobStore(deps: ComponentDeps): Promise<BlobStore & Closable> {
  const { database, clock } = deps;
  const vacuum = vacuumer(deps, 'bus_blobs', SWEEP_PARTS);
  const { rows } = await database.query<{ size: number }>('select coalesce(sum(octet_length(bytes)), 0)::float8 as size from bus_blobs');
  let storedBytes = rows[0]?.size ?? 0;
  const inFlight = new Set<Promise<unknown>>();
  let isShut = false;

  function tracked<Result>(work: () => Promise<Result>): Promise<Result> {
    if (isShut) return Promise.reject(new SwitchyardError('bus.closed', 'the bus is closed'));
    const running = work().finally(() => inFlight.delete(running));
    inFlight.add(running);
    return running;
  }

  async function sweep(): Promise<void> {
    const swept = await database.query<{ count: number; bytes: number }>(
      {
        name: 'bus_blobs_sweep',
        text: `with gone as (
            delete from bus_blobs where (id, part) in (select id, part from bus_blobs where expires_at_ms <= $1 limit $2) returning octet_length(bytes) as size)
          select count(*)::int as count, coalesce(sum(size), 0)::float8 as bytes from gone`,
      },
      [clock.nowMs(), SWEEP_PARTS],
    );
    storedBytes -= swept.rows[0]?.bytes ?? 0;
    await vacuum(swept.rows[0]?.count ?? 0);
  }

  async function put(bytes: Uint8Array): Promise<string> {
    if (bytes.byteLength > MAX_BODY_BYTES) throw new SwitchyardError('bus.body_too_large', `a blob holds at most ${MAX_BODY_BYTES} bytes`);
    await sweep();
    if (storedBytes + bytes.byteLength > MAX_STORED_BYTES) throw new SwitchyardError('bus.full', 'the blob store is full');
    storedBytes += bytes.byteLength;
    const id = ulid(clock.nowMs());
    const parts = Math.max(1, Math.ceil(bytes.byteLength / PART_BYTES));
    // Part 0 is written last and read first, so an unfinished blob does not exist.
    for (let part = parts - 1; part >= 0; part -= 1) {
      await database.query({ name: 'bus_blobs_put', text: 'insert into bus_blobs (id, part, parts, bytes, expires_at_ms) values ($1, $2, $3, $4, $5)' }, [
        id,
        part,
        parts,
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
        clock.nowMs() + RETAIN_MS,
      ]);
    }
    return id;
  }

  async function get(id: string): Promise<Uint8Array | null> {
    const pieces: Uint8Array[] = [];
    for (let part = 0, parts = 1; part < parts; part += 1) {
      const found = await database.query<{ parts: number; bytes: Uint8Array }>(
        { name: 'bus_blobs_get', text: 'select parts, bytes from bus_blobs where id = $1 and part = $2 and expires_at_ms > $3' },
        [id, part, clock.nowMs()],
      );
      const row = found.rows[0];
      if (row === undefined) return null;
      parts = row.parts;
      pieces.push(row.bytes);
    }
    return Buffer.concat(pieces);
  }

  return {
    put: (bytes) => tracked(() => put(bytes)),
    get: (id) => tracked(() => get(id)),
    stopReaders: async () => {},
    shut: async () => {
      isShut = true;
      await Promise.allSettled(inFlight);
    },
  };
}
