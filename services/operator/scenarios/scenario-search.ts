import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { Scenario } from './scenario.ts';

/** What searches find stands in the scenario: none is ever made. Null: the scenario says nothing of searches, so they are lost. */
export function scenarioSearch(stated: Scenario['search']): ((query: string) => FoundDocument[]) | null {
  if (stated === undefined) return null;
  return (query) => {
    const found = stated.find(({ query: part = '' }) => query.toLowerCase().includes(part.toLowerCase()));
    return (found?.documents ?? []).map(({ content, title = null, url = null }) => ({ content, title, url }));
  };
}
