import { describe, expect, it } from 'vitest';
import { rankByWords } from './rank-by-words.ts';

const byText = rankByWords(({ text }: { text: string }) => text);
const rank = (query: string, ...texts: string[]) =>
  byText(
    query,
    texts.map((text) => ({ text })),
  ).map(({ text }) => text);

describe('rule 14: likeness by shared words', () => {
  it('leaves out texts without a shared word', () => {
    expect(rank('refund for a machine', 'refund', 'delivery', 'machine')).toEqual(['refund', 'machine']);
    expect(rank('', 'refund')).toEqual([]);
    expect(rank('refund')).toEqual([]);
  });

  it('counts rare words more than common ones', () => {
    expect(rank('the leak', 'the order', 'the parcel', 'the bill', 'a leak')[0]).toBe('a leak');
  });

  it('prefers short texts, and several shared words over one repeated', () => {
    expect(rank('leak', 'leak and many other words about something else', 'a leak')[0]).toBe('a leak');
    expect(rank('leak refund', 'leak leak leak leak', 'leak refund bill form')[0]).toBe('leak refund bill form');
  });

  it('keeps the order of equal ones', () => {
    expect(rank('leak', 'leak one', 'leak two', 'leak six')).toEqual(['leak one', 'leak two', 'leak six']);
  });

  it('finds words whatever their case and form, and in scripts without spaces', () => {
    expect(rank('RÜCKGABE', 'ru\u0308ckgabe', 'versand')).toEqual(['ru\u0308ckgabe']);
    expect(rank('水が漏れる', '漏れる機械', '返金')).toEqual(['漏れる機械']);
  });

  it('reads the beginning of a huge text', () => {
    expect(rank(`leak ${'x '.repeat(1_000_000)}`, `${'y '.repeat(1_000_000)} leak`, 'leak')).toEqual(['leak']);
  });

  it('reads each document once', () => {
    const read: string[] = [];
    const ranked = rankByWords(({ text }: { text: string }) => {
      read.push(text);
      return text;
    });
    const documents = [{ text: 'a leak' }, { text: 'a refund' }];

    expect(ranked('leak', documents)).toEqual([documents[0]]);
    expect(ranked('refund', documents)).toEqual([documents[1]]);
    expect(read).toEqual(['a leak', 'a refund']);
  });
});
