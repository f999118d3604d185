import { expect, it } from 'vitest';
import { ProgressLine } from './progress-line.ts';

function lineOf(columns: number | null) {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  return { line: new ProgressLine(columns === null ? null : { columns, write }), written };
}

it('is written over, cut to the terminal, and erased once before a result', () => {
  const { line, written } = lineOf(20);
  line.clear();
  line.show('1 of 10 scenarios');
  line.show('2 of 10 scenarios are played');
  line.clear();
  line.clear();

  expect(written).toEqual(['\r\u001b[K1 of 10 scenarios', '\r\u001b[K2 of 10 scenarios …', '\r\u001b[K']);
});

it('is nothing where there is no terminal', () => {
  const { line, written } = lineOf(null);
  line.show('1 of 10');
  line.clear();

  expect(written).toEqual([]);
});
