import { stringify } from 'yaml';
import { type DocumentedAlert, documentedAlerts } from './operations-tables.ts';

const HEAD = `# Alert rules for Prometheus. Made from the table "Alerts" of docs/operations.md, which says what to do:
#   npx vitest run tests/deploy --project units --update
`;

/** The file of rules that Prometheus reads. */
export function alertRules(): string {
  return HEAD + stringify({ groups: [{ name: 'switchyard', rules: documentedAlerts().map(rule) }] }, { lineWidth: 0 });
}

function rule({ name, condition, holds, severity, meaning }: DocumentedAlert) {
  return {
    alert: name,
    expr: condition,
    ...(holds === null ? {} : { for: holds }),
    labels: { severity },
    annotations: { description: meaning },
  };
}
