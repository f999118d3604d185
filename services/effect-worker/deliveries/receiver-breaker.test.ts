import { describe, expect, it } from 'vitest';
import { ReceiverBreaker } from './receiver-breaker.ts';

function breaker() {
  let nowMs = 0;
  const receiver = new ReceiverBreaker({ nowMs: () => nowMs });
  const enter = () => {
    const pass = receiver.enter();
    if (typeof pass === 'number') throw new Error(`postponed for ${pass} ms`);
    return pass;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { receiver, enter, pass };
}

describe('the breaker of a receiver', () => {
  it('opens after five posts without an answer, and lets one probe through after its pause', () => {
    const { receiver, enter, pass } = breaker();
    for (let n = 0; n < 4; n += 1) expect(receiver.leave('silent', enter())).toBeNull();
    expect(receiver.leave('silent', enter())).toBe('opened');
    expect(receiver.enter()).toBe(5_000);
    pass(5_000);

    const probe = enter();
    expect(probe).toEqual({ isProbe: true });
    expect(receiver.enter()).toBe(5_000);
    expect(receiver.leave('answered', probe)).toBe('closed');
    expect(receiver.enter()).toEqual({ isProbe: false });
  });

  it('allows one probe when an earlier post ends meanwhile, whose silence does not count', () => {
    const { receiver, enter, pass } = breaker();
    const early = Array.from({ length: 7 }, enter);
    for (const one of early.slice(0, 5)) receiver.leave('silent', one);
    pass(5_000);
    const probe = enter();
    expect(receiver.leave('unknown', early[5] ?? probe)).toBeNull();
    expect(receiver.leave('silent', early[6] ?? probe)).toBeNull();

    expect(receiver.enter()).toBe(5_000);
    receiver.leave('silent', probe);
    expect(receiver.enter()).toBe(10_000);
  });
});
