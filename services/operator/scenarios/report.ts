import { escapeUnprintable } from '#shared/contracts/printed-name.ts';
import { shortened } from '#shared/errors/shortened.ts';
import { decisionsJson } from '../conversation/decisions-json.ts';
import type { ScenarioReport } from './run-scenario.ts';

const MAX_ABOUT_CHARACTERS = 80;

interface Answering {
  answeredBy: string;
  /** Of vectors; null: the agent has none. */
  unaskedModel: string | null;
}

/** For people: a line for each scenario, and what differs in those that have failed. */
export function reportLines(reports: readonly ScenarioReport[], { answeredBy, unaskedModel }: Answering): string[] {
  const failed = reports.filter(({ hasPassed }) => !hasPassed).length;
  const lines = reports.flatMap((report) => [headLine(report), ...turnLines(report), ...(report.fault === null ? [] : [`    ${report.fault}`])]);
  const total = reports.length === 1 ? '1 scenario' : `${reports.length} scenarios`;
  const summary = [
    ...(unaskedModel === null ? [] : [`${unaskedModel} was not asked: shared words decide what is alike.`]),
    `${total}: ${reports.length - failed} passed, ${failed} failed. Answered by ${answeredBy}.`,
  ];
  return [...lines, '', ...summary].map(escapeUnprintable);
}

function headLine({ file, title, hasPassed }: ScenarioReport): string {
  return `${hasPassed ? 'passed' : 'FAILED'}  ${file}: ${title}`;
}

function turnLines({ turns }: ScenarioReport): string[] {
  return turns.flatMap(({ about, mismatches }, index) => {
    if (mismatches.length === 0) return [];
    const pairs = mismatches.flatMap(({ expected, actual }) => [`      - ${expected}`, `      + ${actual}`]);
    return [`    turn ${index + 1}, ${JSON.stringify(shortened(about, MAX_ABOUT_CHARACTERS))}: - expected, + actual`, ...pairs];
  });
}

export function reportJson(reports: readonly ScenarioReport[], { answeredBy, unaskedModel }: Answering): object {
  return {
    passed: reports.filter(({ hasPassed }) => hasPassed).length,
    failed: reports.filter(({ hasPassed }) => !hasPassed).length,
    answered_by: answeredBy,
    not_asked: unaskedModel,
    scenarios: reports.map(({ file, title, hasPassed, fault, turns }) => ({
      ...{ file, title, passed: hasPassed, fault },
      turns: turns.map(({ about, decisions, mismatches }) => ({ about, decisions: decisionsJson(decisions), mismatches })),
    })),
  };
}
