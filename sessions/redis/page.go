package redis

import (
	"context"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/sessions"
)

const (
	// historyPage is how many rows of a list are read at once.
	historyPage = 128
	// historyScan bounds how many rows one call looks at in a search; the caller then asks for the next page.
	historyScan = 10 * historyPage
)

// page reads a page of a list, the newest row first. A list is the ids of rows, sorted by their times in Unix
// milliseconds. It begins after the mark before, and ends after limit rows that add takes. read returns the texts of
// rows; an id without one is dropped from the list.
func (e *engine) page(
	ctx context.Context, list, before string, limit int, read func(ctx context.Context, ids []string) ([]any, error),
	add func(at sessions.Mark, text string) bool,
) (next string, err error) {
	from, _, err := sessions.ParseMark(before)
	if err != nil {
		return "", err
	}
	for looked, taken := 0, 0; looked < historyScan; {
		marks, texts, err := e.rowsAfter(ctx, list, from, read)
		if err != nil || len(marks) == 0 {
			return "", err
		}
		looked += len(marks)
		for i, mark := range marks {
			if taken == limit {
				return from.String(), nil
			}
			from = mark
			if text, there := texts[i].(string); there && add(mark, text) {
				taken++
			}
		}
	}
	return from.String(), nil
}

// rowsAfter reads the rows after a mark; the zero mark is before all of them. There are none at the end of the list.
func (e *engine) rowsAfter(
	ctx context.Context, list string, from sessions.Mark, read func(ctx context.Context, ids []string) ([]any, error),
) (marks []sessions.Mark, texts []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	newest := "+inf"
	if from != (sessions.Mark{}) {
		newest = strconv.FormatInt(from.At, 10)
	}
	var ids []string
	for skip := int64(0); len(ids) == 0; skip += historyPage { // there may be many of one moment
		rows, err := e.client.ZRangeArgsWithScores(ctx, goredis.ZRangeArgs{Key: list, ByScore: true, Rev: true,
			Start: newest, Stop: "-inf", Offset: skip, Count: historyPage}).Result()
		if err != nil || len(rows) == 0 {
			return nil, nil, e.fault(err)
		}
		for _, row := range rows {
			mark := sessions.Mark{At: int64(row.Score), Key: row.Member.(string)}
			if newest == "+inf" || mark.At < from.At || mark.Key < from.Key {
				ids, marks = append(ids, mark.Key), append(marks, mark)
			}
		}
	}
	if texts, err = read(ctx, ids); err != nil {
		return nil, nil, e.fault(err)
	}
	var lost change
	for i, mark := range marks {
		if texts[i] == nil {
			lost.saw(mark.At, "ZSCORE", list, mark.Key) // it may have come back meanwhile
			lost.do("ZREM", list, mark.Key)
		}
	}
	if len(lost.commands) > 0 {
		_, _ = e.run(ctx, fence{}, lost) // else with the next read
	}
	return marks, texts, nil
}
