import { createSocket, type Socket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type NameLookup, nameLookup } from './name-lookup.ts';

const IPV4 = 1;
const IPV6 = 28;
const SERVER_FAILED = 2;
const NO_SUCH_NAME = 3;

/** The name server's response to one query type: addresses as bytes, an error code, or none. */
type Answer = number[][] | number | 'silence';

describe('nameLookup', () => {
  let server: Socket;
  let lookup: NameLookup;
  let answers: { ipv4: Answer; ipv6: Answer };
  let asked = 0;

  beforeEach(async () => {
    asked = 0;
    server = createSocket('udp4', (question, { port, address }) => {
      asked += 1;
      const type = question.readUInt16BE(question.indexOf(0, 12) + 1);
      const answer = type === IPV6 ? answers.ipv6 : answers.ipv4;
      if (answer !== 'silence') server.send(reply(question, type, answer), port, address);
    });
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
    lookup = nameLookup({ servers: [`127.0.0.1:${server.address().port}`], timeoutMs: 50 });
  });

  afterEach(() => new Promise<void>((resolve) => server.close(() => resolve())));

  it('throws when the name has no address of either family', async () => {
    answers = { ipv4: NO_SUCH_NAME, ipv6: NO_SUCH_NAME };
    await expect(lookup('hooks.example', 'dns')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  it('times out soon when the name server is silent', async () => {
    answers = { ipv4: 'silence', ipv6: 'silence' };
    await expect(lookup('hooks.example', 'dns')).rejects.toMatchObject({ code: 'ETIMEOUT' });
    expect(asked).toBeLessThanOrEqual(4);
  });

  it('returns the addresses of one family when there are none of the other', async () => {
    answers = { ipv4: [[192, 0, 2, 1]], ipv6: SERVER_FAILED };
    expect(await lookup('hooks.example', 'dns')).toEqual(['192.0.2.1']);
    answers = { ipv4: NO_SUCH_NAME, ipv6: [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]] };
    expect(await lookup('hooks.example', 'dns')).toEqual(['2001:db8::1']);
  });

  it('returns all addresses, those of IPv4 first', async () => {
    answers = {
      ipv4: [
        [192, 0, 2, 1],
        [10, 0, 0, 1],
      ],
      ipv6: [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
    };
    expect(await lookup('hooks.example', 'dns')).toEqual(['192.0.2.1', '10.0.0.1', '::1']);
  });

  it('reads the hosts file only when it is asked for what the system knows', async () => {
    answers = { ipv4: NO_SUCH_NAME, ipv6: NO_SUCH_NAME };
    expect(await lookup('localhost', 'system')).toEqual(expect.arrayContaining([expect.stringMatching(/^(127\.|::1$)/)]));
    expect(asked).toBe(0);
  });
});

/** The query marked as a response, with one record per address. */
function reply(question: Buffer, type: number, answer: number[][] | number): Buffer {
  const endOfQuestion = question.indexOf(0, 12) + 5;
  const head = Buffer.from(question.subarray(0, endOfQuestion));
  const addresses = typeof answer === 'number' ? [] : answer;
  head.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const records = addresses.map((address) => Buffer.from([0xc0, 12, 0, type, 0, IPV4, 0, 0, 0, 60, 0, address.length, ...address]));
  return Buffer.concat([head, ...records]);
}
