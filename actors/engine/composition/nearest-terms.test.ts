import { describe, expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { nearestTerms } from './nearest-terms.ts';

describe('rule 82: the glossary of a prompt', () => {
  it('has all terms up to 50, whatever is said', () => {
    expect(nearestTerms(terms(50), [], nothing)).toHaveLength(50);
  });

  it('has of more terms those that the last messages share words with, in the documents’ order', () => {
    const all = terms(60);

    expect(nearestTerms(all, [], nothing)).toEqual([]);
    expect(nearestTerms(all, said('is name7 like name59, which is word59, or like word3?'), nothing).map(({ name }) => name)).toEqual([
      'name3',
      'name7',
      'name59',
    ]);
    expect(nearestTerms(all, said('about alias5'), nothing).map(({ name }) => name)).toEqual(['name5']);
  });

  it('has at most 20 of them, the nearest ones', () => {
    const all = terms(60).map((term) => ({ ...term, description: `machine ${term.description}` }));
    const found = nearestTerms(all, said('the machine with name41 and name42'), nothing);

    expect(found).toHaveLength(20);
    expect(found.map(({ name }) => name)).toEqual(expect.arrayContaining(['name41', 'name42']));
  });

  it('has those that the turn has added behind them, each once, and at most 20 more', () => {
    const all = terms(60);
    const namesOf = (text: string) => nearestTerms(all, said('is name7 like name59?'), () => text).map(({ name }) => name);

    expect(namesOf('name3 and name59, or alias58')).toEqual(['name7', 'name59', 'name3', 'name58']);
    expect(
      namesOf(
        all
          .slice(30)
          .map(({ description }) => description)
          .join(' '),
      ),
    ).toHaveLength(22);
  });
});

const nothing = () => '';

function terms(count: number) {
  return Array.from({ length: count }, (_, index) => ({ name: `name${index}`, description: `word${index}`, synonyms: [`alias${index}`] }));
}

function said(text: string): ConversationEvent[] {
  const rest = { id: 'evt_1', offset: 0, created_at: '2026-01-01T00:00:00.000Z', source: 'customer', trace_id: 'f'.repeat(32), metadata: {} } as const;
  return [{ ...rest, kind: 'user_message', text }];
}
