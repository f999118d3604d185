import { JetStreamApiError } from '@nats-io/jetstream';
import { expect, it } from 'vitest';
import { verdictOn } from './broker-errors.ts';

const refused = (code: number, errCode: number, description: string) => new JetStreamApiError({ code, err_code: errCode, description });

it.each([
  ['again', 'the first publish of a message is still being stored', refused(409, 10158, 'duplicate message id is in process')],
  ['again', 'a cluster has too few servers for a moment', refused(400, 10005, 'no suitable peers for placement')],
  ['again', 'there is no leader', refused(503, 10008, 'JetStream system temporarily unavailable')],
  ['missing', 'a stream is missing', refused(404, 10059, 'stream not found')],
  ['full', 'a stream is full', refused(503, 10077, 'maximum bytes exceeded')],
  ['never', 'a request is wrong', refused(400, 10025, 'invalid JSON')],
] as const)('%s: %s', (verdict, _, error) => {
  expect(verdictOn(error)).toBe(verdict);
});
