import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packed, unpacked } from './packed-records.ts';

const record = fc.record({ messageId: fc.string(), body: fc.string({ unit: 'binary' }) });

describe('several records as one text', () => {
  it('are read as they were written, whatever their characters', () => {
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 20 }), (records) => {
        expect(unpacked(packed(records))).toEqual(records);
      }),
    );
  });

  it.each([
    ['a text without lengths', 'record'],
    ['an odd number of lengths', '1,2,3\nabbccc'],
    ['a length that is no number', '1,x\nab'],
    ['a negative length', '3,-1\nabc'],
    ['a text that ends early', '1,5\nabcde'],
    ['a text that goes on', '1,1\nabc'],
    ['nothing', ''],
  ])('are not read from %s', (_, text) => {
    expect(unpacked(text)).toBeNull();
  });
});
