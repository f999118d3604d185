import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { brokerTable, growthTable, inUseTable, readBroker, stallsOf } from './soak-report.mjs';

const MIB = 1_024 * 1_024;
const MINUTE_MS = 60_000;

const cellsOf = (table: string) =>
  table.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
/** One each minute. */
const samplesOf = (mib: readonly number[]) => mib.map((size, minute) => ({ atMs: minute * MINUTE_MS, bytes: new Map([['worker', size * MIB]]) }));

describe('the memory of a soak', () => {
  it('is flat if it grows in the first half alone, and a leak shows in both', () => {
    const [, , flat] = cellsOf(growthTable(samplesOf([100, 110, 120, 120, 120, 120])));
    const [, , leak] = cellsOf(growthTable(samplesOf([100, 103, 106, 109, 112, 115])));
    expect(flat).toEqual(['worker', '100.0', '120.0', '120.0', '10.00', '0.00']);
    expect(leak).toEqual(['worker', '100.0', '109.0', '115.0', '3.00', '3.00']);
  });

  it('has what is in use behind a collection, for each look that a process has noted', () => {
    const look = { rss: 150 * MIB, heapUsed: 44 * MIB, external: 4 * MIB, arrayBuffers: MIB };
    expect(cellsOf(inUseTable(new Map([['worker', [look]]]), [1, 3]))[2]).toEqual(['worker', '44.0 + 4.0 of 150.0', 'none']);
  });

  it('names the samples that were late, with the time', () => {
    const at = (...seconds: number[]) => seconds.map((second) => ({ atMs: second * 1_000, bytes: new Map() }));
    expect(stallsOf(at(0, 5, 10.2), 5_000)).toBe('No sample was late.');
    expect(stallsOf(at(0, 5, 22, 27), 5_000)).toBe('Samples were late: 12.0 s after 0.4 min.');
  });
});

describe('the streams of the broker', () => {
  let server: Server | null = null;
  afterEach(() => void server?.close());

  it('are read from its monitoring, with what waits for all consumers, and listed if they have ever had messages', async () => {
    const consumers = [{ num_pending: 2, num_ack_pending: 1 }, { num_pending: 4 }];
    const details = [
      { name: 'USAGE', state: { messages: 6, bytes: MIB }, consumer_detail: consumers },
      { name: 'CMD', state: { messages: 0, bytes: 0 } },
    ];
    server = createServer((request, response) => {
      response.end(JSON.stringify(request.url?.startsWith('/jsz?') ? { account_details: [{ stream_detail: details }] } : {}));
    });
    await new Promise<void>((resolve) => void server?.listen(0, '127.0.0.1', resolve));
    const streams = await readBroker(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(streams).toEqual([
      { name: 'USAGE', messages: 6, bytes: MIB, waiting: 7 },
      { name: 'CMD', messages: 0, bytes: 0, waiting: 0 },
    ]);
    expect(cellsOf(brokerTable([[], streams], [1, 3])).slice(2)).toEqual([['USAGE', 'none', '6, 1.0 MB, 7 waiting']]);
  });
});
