import { describe, expect, it } from 'vitest';
import type { StepView } from '../../step.ts';
import type { MatchItem } from '../match-batch.ts';
import { matchActionable } from './match-actionable.ts';
import { matchObservational } from './match-observational.ts';

const items: MatchItem[] = [
  { id: 'leak', condition: 'the machine leaks', action: 'ask for a photo', options: [] },
  { id: 'refund', condition: 'the customer wants a refund', action: 'ask for the order number', options: [] },
];
const right = { verdicts: [verdict(1, true), verdict(2, false)] };

describe('a question with one verdict for each policy', () => {
  it('rule 3: policies have ordinals, never ids', () => {
    const lines = itemsOf(matchActionable);

    expect(lines).toEqual([
      { id: 1, condition: 'the machine leaks', action: 'ask for a photo' },
      { id: 2, condition: 'the customer wants a refund', action: 'ask for the order number' },
    ]);
  });

  it('rule 5: an observation is judged by its condition alone', () => {
    expect(itemsOf(matchObservational)[0]).toEqual({ id: 1, condition: 'the machine leaks' });
  });

  it('names its answer by a strict schema, the rationale before the verdict', () => {
    const format = matchActionable.render(view(), items).response_format;

    expect(format).toMatchObject({ type: 'json_schema', json_schema: { name: 'match_actionable', strict: true } });
    expect(JSON.stringify(format)).toContain('"required":["id","rationale","applies"],"additionalProperties":false');
    expect(JSON.stringify(format)).not.toContain('minimum');
  });

  it('rule 3: maps the ordinals back to ids, in the order of the policies', () => {
    const swapped = { verdicts: [verdict(2, false), verdict(1, true)] };

    expect(read(JSON.stringify(swapped))).toEqual({
      type: 'read',
      answer: {
        verdicts: [
          { id: 'leak', applies: true, rationale: 'because' },
          { id: 'refund', applies: false, rationale: 'because' },
        ],
        clarification: null,
      },
    });
  });

  it.each<[string, string, RegExp]>([
    ['nothing', '', /empty/],
    ['blanks', ' \n ', /empty/],
    ['no JSON', 'Both apply.', /must be JSON/],
    ['a list', '[]', /must be an object/],
    ['cut-off JSON', '{"verdicts":[{"id":1,', /must be JSON/],
    ['JSON of another schema', '{"verdict":true}', /verdicts/],
    ['an ordinal as text', JSON.stringify({ verdicts: [{ ...verdict(1, true), id: '1' }, verdict(2, true)] }), /verdicts\.0\.id/],
    ['a fraction', JSON.stringify({ verdicts: [verdict(1.5, true), verdict(2, true)] }), /verdicts\.0\.id/],
    ['a verdict as text', JSON.stringify({ verdicts: [{ ...verdict(1, true), applies: 'yes' }, verdict(2, true)] }), /applies/],
    ['no verdicts', '{"verdicts":[]}', /lacks item 1 of 2/],
    ['a missing ordinal', JSON.stringify({ verdicts: [verdict(2, true)] }), /lacks item 1 of 2/],
    ['a repeated ordinal', JSON.stringify({ verdicts: [verdict(1, true), verdict(1, false), verdict(2, true)] }), /item 1 twice/],
    ['an invented ordinal', JSON.stringify({ verdicts: [verdict(1, true), verdict(2, true), verdict(3, true)] }), /item 3 of 2/],
    ['ordinal 0', JSON.stringify({ verdicts: [verdict(0, true), verdict(1, true)] }), /item 0 of 2/],
    ['1 MB', JSON.stringify({ verdicts: [{ ...verdict(1, true), rationale: 'x'.repeat(1_048_576) }, verdict(2, true)] }), /must not be longer than 131072/],
    ['deep nesting', `{"verdicts":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, /nested deeper/],
  ])('rule 3: an answer with %s is malformed', (_, text, reason) => {
    expect(read(text)).toEqual({ type: 'malformed', reason: expect.stringMatching(reason) });
  });

  it('reads another language, unknown fields and a code block', () => {
    const foreign = { ...right, note: 1, verdicts: [{ ...verdict(1, true), rationale: 'Es tropft. 水が漏れる' }, verdict(2, false)] };

    expect(read(`\`\`\`json\n${JSON.stringify(foreign, null, 2)}\n\`\`\``)).toMatchObject({
      type: 'read',
      answer: { verdicts: [{ rationale: 'Es tropft. 水が漏れる' }, {}] },
    });
  });

  it('shortens a long rationale without splitting a character', () => {
    const long = { verdicts: [{ ...verdict(1, true), rationale: '🚰'.repeat(2_000) }, verdict(2, false)] };
    const found = read(JSON.stringify(long));
    const rationale = found.type === 'read' ? (found.answer.verdicts[0]?.rationale ?? '') : '';

    expect(rationale.length).toBeGreaterThan(990);
    expect(rationale.length).toBeLessThanOrEqual(1_000);
    expect(rationale).toMatch(/^(🚰)+…$/u);
  });
});

function read(text: string) {
  return matchActionable.read({ text, toolCalls: [], finishReason: 'stop' }, items);
}

function itemsOf(step: typeof matchActionable): unknown[] {
  const text = String(step.render(view(), items).messages.at(-1)?.content);
  return text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
}

function verdict(id: number, applies: boolean) {
  return { id, rationale: 'because', applies };
}

function view(): StepView {
  return {
    callId: 'trn_1-1',
    nowMs: 0,
    agent: { id: 'acme', name: 'Acme' },
    customerName: null,
    systemPrompt: 'Be kind.',
    language: 'match_user',
    glossary: [],
    variables: [],
    history: [],
    staged: [],
  };
}
