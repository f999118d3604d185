import { Help, type HelpConfiguration } from 'commander';

/** Commander leaves a text whole where less than 40 columns are left beside the terms: it then stands below its term, in place of a terminal's breaks. */
const LEAST_BESIDE = 40;
const INDENT = 4;

/** Help that can be read on a terminal of 20 columns. */
export const narrowHelp: HelpConfiguration = {
  minWidthToWrap: 12,
  formatItem(term, termWidth, description, helper) {
    const width = helper.helpWidth ?? 80;
    if (description === '' || width - termWidth - INDENT >= LEAST_BESIDE) return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
    const lines = helper.boxWrap(description, Math.max(width - INDENT, 12)).split('\n');
    return [`  ${term}`, ...lines.map((line) => ' '.repeat(INDENT) + line)].join('\n');
  },
};
