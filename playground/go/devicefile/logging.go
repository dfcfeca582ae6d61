package devicefile

import (
	"log/slog"
	"os"
)

// LogLines makes every log entry one line of JSON on standard output, where the container runtime
// picks it up. Level 0 is what people want to read; libraries speak at lower ones.
func LogLines() *slog.Logger {
	logger := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelInfo}))
	slog.SetDefault(logger)
	return logger
}
