import { describe, expect, it } from 'vitest';
import { matched, result, toolCallsIn } from '../../test-support/tool-turn.ts';

const announcing = { announcesTools: true };

describe('`announce_tools`', () => {
  it('rule 110: each batch ends in one line and the status with the same text, before the reply', () => {
    const { session, id } = matched(announcing);
    session.infer(id(2), ['shop__refund', { id: 7 }], ['shop__order', { id: 7 }]);
    session.tool(id(4), result({ state: 'secret' }));
    expect(session.lines.at(-1)).toBe('processing/tools');
    session.tool(id(3), { type: 'failed', reason: 'timeout', message: 'late' });
    session.finish();

    expect(session.lines.slice(3)).toEqual([
      'processing/tools',
      'tool ',
      'preamble refund · order',
      'processing/refund · order',
      'typing',
      'assistant_message a reply',
      'ready',
    ]);
    expect(session.log.find(({ kind }) => kind === 'preamble')).toMatchObject({ source: 'ai_agent', metadata: { announces: 'tools' } });
  });

  it('rule 110: the text is the stage of the next status, in place of its label', () => {
    const { session, id } = matched({ ...announcing, reevaluationTools: ['shop:order', 'shop:refund'], maxIterations: 2 });
    session.infer(id(2), ['shop__order', {}]);
    session.tool(id(3), result('sent'));
    session.judge(id(4), ['late']);
    session.infer(id(5), ['shop__refund', {}]);
    session.tool(id(6), result('done'));
    session.finish();

    expect(session.lines.slice(2, -3)).toEqual([
      'processing/matching',
      'processing/tools',
      ...['tool ', 'preamble order', 'processing/order'],
      'processing/tools',
      ...['tool ', 'preamble refund', 'processing/refund'],
    ]);
  });

  it('rule 110: also of a batch that leaves no event, and never of one that is cancelled', () => {
    const { session, id } = matched(announcing);
    session.infer(id(2), ['shop__order', {}]);
    session.tool(id(3), result('for this reply', { 'switchyard/control': { lifespan: 'response' } }));
    expect(session.lines.slice(4)).toEqual(['preamble order', 'processing/order', 'typing']);
    session.finish();

    const cancelled = matched(announcing);
    cancelled.session.infer(cancelled.id(2), ['shop__refund', {}]);
    cancelled.session.say('Stop!');
    cancelled.session.tool(cancelled.id(3), result('refunded'));
    expect(toolCallsIn(cancelled.session)).toHaveLength(1);
    expect(cancelled.session.lines.some((line) => line.startsWith('preamble'))).toBe(false);
  });

  it('rule 110: without it there is none', () => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__order', {}]);
    session.tool(id(3), result('sent'));
    expect(session.lines.slice(4)).toEqual(['tool ', 'typing']);
  });
});
