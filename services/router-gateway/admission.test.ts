import { describe, expect, it } from 'vitest';
import { Admission } from './admission.ts';
import { gatewayLimits } from './limits.ts';

const admission = () => new Admission({ ...gatewayLimits, openCalls: 20, bufferedBodyBytes: 100 });

describe('Admission', () => {
  it('reserves nothing for calls that announce a large body and send nothing', () => {
    const gate = admission();
    for (let call = 0; call < 10; call += 1) gate.enter(90);
    expect(() => gate.enter(90).bodyGrew(90)).not.toThrow();
  });

  it('counts received bytes, announced or not', () => {
    const gate = admission();
    const first = gate.enter(0);
    first.bodyGrew(60);
    const second = gate.enter(0);
    second.bodyGrew(40);
    expect(() => second.bodyGrew(1)).toThrow(expect.objectContaining({ code: 'service.overloaded' }));
    expect(() => gate.enter(1)).toThrow(expect.objectContaining({ code: 'service.overloaded' }));
    second.leave();
    first.bodyGrew(40);
    first.bodyDone();
    expect(() => gate.enter(100).bodyGrew(100)).not.toThrow();
  });

  it('always accepts one body, whatever its size', () => {
    const gate = admission();
    const only = gate.enter(1_000);
    only.bodyGrew(500);
    expect(() => only.bodyGrew(500)).not.toThrow();
    expect(() => gate.enter(1)).toThrow(expect.objectContaining({ code: 'service.overloaded' }));
  });

  it('counts no bytes that come after the end of a call', () => {
    const gate = admission();
    const gone = gate.enter(10);
    gone.bodyGrew(10);
    gone.leave();
    gone.leave();
    gone.bodyGrew(90);
    const next = gate.enter(90);
    next.bodyGrew(90);
    expect(() => next.bodyGrew(500)).not.toThrow();
  });
});
