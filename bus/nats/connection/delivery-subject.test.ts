import { describe, expect, it } from 'vitest';
import { parseDelivery } from './delivery-subject.ts';

const INFO = { delivery: 2, streamSequence: 41, consumerSequence: 7, storedAtMs: 1_795_253_563_176, pending: 3 };

describe('parseDelivery', () => {
  it.each(['', '_INBOX.x', '$JS.API.x', '$JS.ACK.CMD.r1.2.41.7.1795253563176341207', '$JS.ACK.CMD.r1.x.41.7.1795253563176341207.3'])(
    'knows nothing of %s',
    (reply) => {
      expect(parseDelivery(reply)).toBeNull();
    },
  );

  it('reads the form of current brokers', () => {
    expect(parseDelivery('$JS.ACK.CMD.r1.2.41.7.1795253563176341207.3')).toEqual(INFO);
  });

  it('reads the longer form, which names a domain and an account', () => {
    expect(parseDelivery('$JS.ACK.hub.ACCOUNT.CMD.r1.2.41.7.1795253563176341207.3.RANDOM')).toEqual(INFO);
    expect(parseDelivery('$JS.ACK._.ACCOUNT.CMD.r1.2.41.7.1795253563176341207.3')).toEqual(INFO);
  });
});
