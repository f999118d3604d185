import { describe, expect, it } from 'vitest';
import { clientEvent, create, DrivenSession, post } from '../../test-support/driven-session.ts';

describe('an event of a front end', () => {
  it('is refused by a session that does not exist', () => {
    expect(new DrivenSession().apply(clientEvent({ kind: 'custom', data: 1 }))).toMatchObject({ ok: false, code: 'session.not_found' });
  });

  it('is appended as it was sent, under its own trace, and begins no turn', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    const command = clientEvent({ kind: 'custom', data: { page: '/cart' } });
    const reply = driven.apply(command);
    driven.apply(clientEvent({ kind: 'custom', data: null }));

    const about = { source: 'customer_ui', trace_id: command.traceId, metadata: { tab: 1 } };
    expect(driven.log).toMatchObject([
      { ...about, kind: 'custom', offset: 0, data: { page: '/cart' } },
      { kind: 'custom', data: null },
    ]);
    expect(reply).toEqual({ ok: true, value: { event: driven.log[0] } });
    expect(driven.openCall).toBeNull();
  });

  it('leaves the turn in progress alone, and a message right behind it joins that turn as before', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    driven.apply(clientEvent({ kind: 'custom', data: 1 }));
    driven.apply(post('two'));

    expect(driven.lines).toEqual(['user_message one', 'acknowledged', 'typing', 'custom ', 'user_message two']);
  });

  it('does not change the status of the session, whatever status it is', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    driven.apply(clientEvent({ kind: 'status', status: 'cancelled', data: { field: 'name' } }));

    expect(driven.log.at(-1)).toMatchObject({ kind: 'status', status: 'cancelled', stage: null, error_detail: null, data: { field: 'name' } });
    expect(driven.state?.record.status).toBe('typing');
    driven.apply(clientEvent({ kind: 'status', status: 'typing' }));
    expect(driven.log.at(-1)).not.toHaveProperty('data');
  });
});

describe('the participant of a message', () => {
  it('stands in its event', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply({ ...post('Hello'), v: 3, participant: { id: null, display_name: 'Ada' } });

    expect(driven.log[0]).toMatchObject({ kind: 'user_message', text: 'Hello', participant: { id: null, display_name: 'Ada' } });
  });
});
